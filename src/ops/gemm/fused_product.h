// Which GEMMs run as one of our kernels with a fused epilogue.
#pragma once

#include <initializer_list>

#include "core/device/op.h"

namespace hctr::ops::hopper {

/// Whether ops/gemm/fused_product.cuh supports these matrices in this context. The conditions: the compute stream of a
/// GPU of compute capability 9.0; dtype f16 or bf16, or f32 with TF32 GEMMs; rows aligned to 16 bytes. The columns of
/// the result, or the columns with the zeros after the last column, must fill a multiple of 16 bytes, because the TMA
/// stores units of 16 bytes.
bool takes_fused_product(Context&, std::initializer_list<Tensor> operands, const Tensor& result);

/// c = a b^T, for matrices that satisfy takes_fused_product(). Dtypes: all equal. Shapes: a [m, k], b [n, k], c [m, n].
void matmul_transposed(Context&, Tensor a, Tensor b, Tensor c);

}  // namespace hctr::ops::hopper
