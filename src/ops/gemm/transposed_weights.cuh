// Transposed weights of callers that keep no copy of them.
#pragma once

#include "core/device/context.h"
#include "core/device/tensor.h"
#include "ops/gemm/transposed_weights.h"

namespace hctr::ops::cuda {

/// Whether a product of this many rows with weights [in, out] gains more by transposed weights than transposing takes:
/// f32 whose products are TF32, on the compute stream of a GPU of compute capability 9.0.
bool takes_transposed_weights(Context&, int64_t rows, const Tensor& w);

/// w^T of transposed_weights_spec(), in operand_memory(). Shape: w [in, out]; f32.
Tensor transposed_weights(Context&, const Tensor& w);

}  // namespace hctr::ops::cuda
