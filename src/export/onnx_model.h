// Converts a model to a graph of ONNX operators that maps keys and dense values to scores.
//
// Inputs are named as in the config:
//   dense values     f32 [N, dense_dim]; omitted if the model reads none
//   sparse input     i64 keys: [N, slots] if each slot has at most one key, else [N, slots, K]
// Outputs: "score", f32 [N, labels]. A model with several losses has an output "score_<top>" per loss.
#pragma once

#include <limits>

#include "export/model_arrays.h"
#include "export/onnx_file.h"

namespace hctr {

/// The key that pads bags to the same length. It contributes nothing, because it is the smallest key that has no row in
/// any table. For nearly all models this key is kNoKey.
inline constexpr int64_t kNoKey = std::numeric_limits<int64_t>::min();
int64_t no_key_of(const ModelArrays&);

/// The last dimension of a sparse input: the keys per slot. With one key per slot, the input does not have this
/// dimension.
struct OnnxKeys {
  int64_t most = 1;
  bool fixed = false;  ///< true: exactly `most` keys, as an embedding without pooling requires; false: any number
};
OnnxKeys onnx_keys(const Config&, const SparseInput&);

/// Builds the ONNX graph. The result refers to `arrays`. Errors: Error(config) naming a layer that reads labels or has
/// no ONNX equivalent.
OnnxModel onnx_model(const Config&, const ModelArrays& arrays);

}  // namespace hctr
