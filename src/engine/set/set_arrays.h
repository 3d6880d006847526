// Checks the options and arrays of the library's caller. Arrays on a GPU cannot be checked completely.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/set/set_table.h"

namespace hctr {

/// Throws Error(usage) with this text.
[[noreturn]] void refuse_call(const std::string& what);

/// Errors: Error(usage) naming the invalid option.
void check_options(const EmbeddingOptions&);
/// Returns the table index of each feature.
std::vector<size_t> tables_of_features(const EmbeddingOptions&);

/// Returns the keys of each feature. Errors: Error(usage). On a CPU also Error(usage) for decreasing offsets, and
/// Error(data) for a row number that does not exist.
std::vector<ops::FeatureBags> checked_bags(const EmbeddingOptions&, std::span<const size_t> table_of, int64_t samples,
                                           std::span<const FeatureKeys>);
/// Errors: Error(usage) if the pointer to the vectors is null, or their stride is below `dim`. `counts`:
/// each feature's number of keys.
void check_vectors(const EmbeddingOptions&, std::span<const size_t> table_of, int64_t samples,
                   std::span<const int64_t> counts, std::span<const PlacedVectors>);

/// Converts the vectors of each feature. A stride of 0 is passed on as 0.
template <class T>
std::vector<PlacedVectors> placed(std::span<const FeatureVectors<T>> vectors) {
  std::vector<PlacedVectors> all;
  for (const FeatureVectors<T>& one : vectors) all.push_back({const_cast<float*>(one.data), one.stride});
  return all;
}

}  // namespace hctr
