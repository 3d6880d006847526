// Batches in which the values of one feature are permuted between samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/data/batch_layout.h"
#include "formats/data/data_section.h"

namespace hctr {

/// A feature: a dense value, or a slot of a sparse input.
struct InputFeature {
  std::string name;
  bool is_dense = false;
  size_t input = 0;  ///< sparse input of the slot
  int64_t index = 0;
};
/// All features: dense values first, then slots.
std::vector<InputFeature> features_of(const DataSection&);

/// Copies the batch `from`, and replaces the feature of row r by the feature of row order[r]. `order` is a permutation
/// of the first `rows` rows. Bags keep their keys in order; other features do not change.
void permute_feature(const BatchLayout&, std::byte* from, const InputFeature&, const std::vector<int64_t>& order,
                     std::byte* to);

/// A permutation of 0 ... rows - 1 that depends only on the arguments.
std::vector<int64_t> random_order(int64_t rows, uint64_t seed);

}  // namespace hctr
