// What a caller gives an EmbeddingSet: options and arrays, checked as far as the host knows them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/set/set_table.h"

namespace hctr {

/// Throws Error(usage).
[[noreturn]] void refuse_call(const std::string& what);

/// Errors: Error(usage) naming what does not fit.
void check_options(const EmbeddingOptions&);
/// Of each feature: the number of its table.
std::vector<size_t> tables_of_features(const EmbeddingOptions&);

/// The keys of each feature. Errors: Error(usage); on a CPU also where offsets decrease, and Error(data) for a row
/// number that does not exist.
std::vector<ops::FeatureBags> checked_bags(const EmbeddingOptions&, std::span<const size_t> table_of, int64_t samples,
                                           std::span<const FeatureKeys>);
/// Errors: Error(usage) for vectors without memory, or too close to each other. `counts`: keys of each feature.
void check_vectors(const EmbeddingOptions&, std::span<const size_t> table_of, int64_t samples,
                   std::span<const int64_t> counts, std::span<const PlacedVectors>);

/// Vectors of each feature, as they are given: a stride of 0 stays so.
template <class T>
std::vector<PlacedVectors> placed(std::span<const FeatureVectors<T>> vectors) {
  std::vector<PlacedVectors> all;
  for (const FeatureVectors<T>& one : vectors) all.push_back({const_cast<float*>(one.data), one.stride});
  return all;
}

}  // namespace hctr
