// A model as a graph of ONNX operators, from keys and dense values to scores.
//
// Inputs, by the names that the config gives them:
//   dense values     f32 [N, dense_dim], where the model has some
//   a sparse input   i64 [N, slots] keys, if a slot has one key at the most; else [N, slots, K]
// Outputs: "score" f32 [N, labels], or with several losses "score_<top>" for each.
#pragma once

#include <limits>

#include "export/model_arrays.h"
#include "export/onnx_file.h"

namespace hctr {

/// The key that stands where a slot has none, or no more. It counts for nothing. The least that no table has a row of:
/// kNoKey for nearly all models.
inline constexpr int64_t kNoKey = std::numeric_limits<int64_t>::min();
int64_t no_key_of(const ModelArrays&);

/// The keys that a slot has at the input of a sparse input: its last dimension. 1: there is no such dimension.
struct OnnxKeys {
  int64_t most = 1;
  bool fixed = false;  ///< exactly `most` of them, as an embedding without pooling needs; else any number
};
OnnxKeys onnx_keys(const Config&, const SparseInput&);

/// Refers to `arrays`. Errors: Error(config) naming a layer that has no such form, or that reads labels.
OnnxModel onnx_model(const Config&, const ModelArrays& arrays);

}  // namespace hctr
