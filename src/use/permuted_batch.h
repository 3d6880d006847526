// Batches in which one feature belongs to other samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/data/batch_layout.h"
#include "formats/data/data_section.h"

namespace hctr {

/// A dense value, or a slot of a sparse input.
struct InputFeature {
  std::string name;
  bool is_dense = false;
  size_t input = 0;  ///< sparse input of the slot
  int64_t index = 0;
};
/// Dense values first, then slots.
std::vector<InputFeature> features_of(const DataSection&);

/// Gives row r of the first `rows` the feature of row order[r], in a copy of `from`. `order` is a permutation of these
/// rows. Every bag keeps its keys and their order; all other features stay.
void permute_feature(const BatchLayout&, std::byte* from, const InputFeature&, const std::vector<int64_t>& order,
                     std::byte* to);

/// A permutation of 0 ... rows - 1 that depends on the numbers alone.
std::vector<int64_t> random_order(int64_t rows, uint64_t seed);

}  // namespace hctr
