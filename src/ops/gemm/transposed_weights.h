// Transposed copies of weights. In a copy, all weights of one output are contiguous, as Hopper's MMA instruction
// requires for f32.
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

/// Whether f32 linear() and linear_relu_dropout() are faster with transposed copies: true if GEMMs use TF32 on a GPU of
/// compute capability 9.0.
bool gains_by_transposed_weights(const Runtime&);
bool gains_by_transposed_weights(const std::optional<GpuTraits>&, const RuntimeOptions&);
/// If a GEMM has fewer rows, transposing its weights costs as much time as the fused GEMM saves.
inline constexpr int64_t kLeastRowsOfTransposed = 1024;

/// The spec of the transposed copy of weights w. Zeros pad each row to a multiple of 16 bytes.
TensorSpec transposed_weights_spec(const TensorSpec& w);
/// Throws Error(bug) unless `copy` has transposed_weights_spec(w) and is on the device of w.
void expect_transposed_weights(const char* what, const Tensor& w, const Tensor& copy);

/// Writes all copies in one kernel, including the zeros that pad each row. Shapes: w [in, out], each copy with
/// transposed_weights_spec(), aligned to 16 bytes. Dtypes: f32.
HCTR_OP(void transpose_weights(Context&, const std::vector<TransposedWeights>&))

}  // namespace hctr::ops
