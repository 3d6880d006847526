// Checks the keys, vectors and gradients that C callers pass to an EmbeddingSet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/embedding_handle.h"
#include "hctr/embedding.h"
#include "hctr/huge_ctr.h"

namespace hctr::capi {

// Errors of all functions below: Error(usage) naming the array and its feature.

/// Checks that an array is in memory of the set's device.
void check_device(const EmbeddingSet&, const hctr_array&, const std::string& what);
/// `keys`: [feature].
std::vector<FeatureKeys> keys_of(const hctr_embedding&, int64_t samples, const hctr_feature_keys* keys);
/// The number of vectors of each feature.
std::vector<int64_t> rows_of(const EmbeddingSet&, int64_t samples, const std::vector<FeatureKeys>&);
/// Views of the vectors of each feature. `arrays`: [feature]. `rows`: the expected number of vectors of each feature.
std::vector<FeatureVectors<float>> vectors_of(const hctr_embedding&, const hctr_array* arrays,
                                              const std::vector<int64_t>& rows);
/// The gradients of a batch's vectors. `arrays`: [feature].
std::vector<FeatureVectors<const float>> gradients_of(const hctr_embedding&, int64_t batch, const hctr_array* arrays);

}  // namespace hctr::capi
