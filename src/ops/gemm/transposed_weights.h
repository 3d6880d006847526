// Copies of weights with the inputs of an output adjacent, as Hopper's matrix instruction takes f32.
#pragma once

#include <optional>
#include <vector>

#include "core/device/gpu_traits.h"
#include "core/device/op.h"

namespace hctr::ops {

/// Weights [in, out] and their copy [out, in].
struct TransposedWeights {
  Tensor w, copy;
};

/// Whether linear() and linear_relu_dropout() of f32 are faster where the caller keeps such copies: products are TF32,
/// on a GPU of compute capability 9.0.
bool gains_by_transposed_weights(const Runtime&);
bool gains_by_transposed_weights(const std::optional<GpuTraits>&, const RuntimeOptions&);
/// With fewer rows transposing takes as long as what one kernel for a product and its end gains.
inline constexpr int64_t kLeastRowsOfTransposed = 1024;

/// Of the copy of such weights: zeros follow each row up to a multiple of 16 bytes.
TensorSpec transposed_weights_spec(const TensorSpec& w);
/// Throws Error(bug) unless `copy` has that spec, and the device of w.
void expect_transposed_weights(const char* what, const Tensor& w, const Tensor& copy);

/// Writes all copies and the zeros behind their rows, in one kernel. Shapes: w [in, out], each copy of
/// transposed_weights_spec(), at a multiple of 16 bytes. Dtypes: f32.
HCTR_OP(void transpose_weights(Context&, const std::vector<TransposedWeights>&))

}  // namespace hctr::ops
