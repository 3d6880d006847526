// Which GEMMs run as one kernel of ours with their epilogue.
#pragma once

#include <initializer_list>

#include "core/device/op.h"

namespace hctr::ops::hopper {

/// Whether ops/gemm/fused_product.cuh takes these matrices on the device and stream of the context: the compute stream
/// of a GPU of compute capability 9.0; f16, bf16, or f32 whose GEMMs are TF32; rows at multiples of 16 bytes.
/// Columns of the result end at such a multiple too, or zeros after them do: the copy engine stores units of 16 bytes.
bool takes_fused_product(Context&, std::initializer_list<Tensor> operands, const Tensor& result);

/// c = a b^T for matrices that satisfy takes_fused_product(), all of one dtype. Shapes: a [m, k], b [n, k], c [m, n].
void matmul_transposed(Context&, Tensor a, Tensor b, Tensor c);

}  // namespace hctr::ops::hopper
