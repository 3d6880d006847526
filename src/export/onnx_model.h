// A model as a graph of ONNX operators, from keys and dense values to scores.
//
// Inputs, with the names of the config:
//   dense values     f32 [N, dense_dim], if the model has any
//   a sparse input   i64 [N, slots] keys if a slot has at most one key; else [N, slots, K]
// Outputs: "score" f32 [N, labels], or with several losses "score_<top>" for each.
#pragma once

#include <limits>

#include "export/model_arrays.h"
#include "export/onnx_file.h"

namespace hctr {

/// The key that pads a slot with fewer keys. It contributes nothing. It is the smallest key without a row in any table:
/// kNoKey for nearly all models.
inline constexpr int64_t kNoKey = std::numeric_limits<int64_t>::min();
int64_t no_key_of(const ModelArrays&);

/// The last dimension of a sparse input: the number of keys per slot. 1: there is no such dimension.
struct OnnxKeys {
  int64_t most = 1;
  bool fixed = false;  ///< exactly `most` keys, as an embedding without pooling requires; else any number
};
OnnxKeys onnx_keys(const Config&, const SparseInput&);

/// Refers to `arrays`. Errors: Error(config) naming a layer that has no ONNX equivalent, or that reads labels.
OnnxModel onnx_model(const Config&, const ModelArrays& arrays);

}  // namespace hctr
