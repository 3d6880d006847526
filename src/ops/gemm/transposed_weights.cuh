// Transposed weights for callers that keep no transposed copy.
#pragma once

#include "core/device/context.h"
#include "core/device/tensor.h"
#include "ops/gemm/transposed_weights.h"

namespace hctr::ops::cuda {

/// Whether transposing weights [in, out] for a GEMM with `rows` rows saves more time than it costs. The conditions: f32
/// with TF32 GEMMs, on the compute stream of a GPU of compute capability 9.0.
bool takes_transposed_weights(Context&, int64_t rows, const Tensor& w);

/// Writes the transpose of w, with transposed_weights_spec(), to operand_memory(). Shape: w [in, out]; f32.
Tensor transposed_weights(Context&, const Tensor& w);

}  // namespace hctr::ops::cuda
