// GEMMs, and the fully connected layer.
#pragma once

#include <optional>

#include "core/device/gpu_traits.h"
#include "core/device/op.h"

namespace hctr::ops {

enum class Transpose : bool { no, yes };

/// c = op(a) op(b), sums kept in f32 (CUDA: true f32, or TF32 when the Runtime says so, or large GEMMs of operands
/// split into two TF32 numbers, ops/gemm/tf32_split.h: the CPU computes those in true f32). Overwrites c.
/// Shapes: op(a) [m, k], op(b) [k, n], c [m, n]; any row strides. Dtypes: f32 f16 bf16, all alike, or c f32.
/// Aliasing: c is neither a nor b. CPU f32 and f64 use the CBLAS library, one part of c per task; results do not
/// depend on the number of threads (ops/gemm/product_parts.h).
HCTR_OP(void matmul(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c))

/// c = op(a) op(b) + addend, in f32, rounded once if the GEMM is the library's. Shapes: addend as c; otherwise as in
/// matmul. All of one dtype. Aliasing: c is none of the others.
HCTR_OP(void matmul_plus(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor addend, Tensor c))

/// y = x W + bias, or max(x W + bias, 0) with `relu`. Shapes: x [batch, in], w [in, out], bias [out], y [batch, out];
/// any row strides of x, w, y. All of one dtype. `transposed`: a copy of w in f32, if the caller keeps one
/// (ops/gemm/transposed_weights.h). With `relu`, and in two-byte types or TF32, small batches on Hopper and contexts
/// that are held to some multiprocessors get a kernel of ours: its sums have another order than the library's.
HCTR_OP(void linear(Context&, Tensor x, Tensor w, Tensor bias, Tensor y, bool relu = false,
                    std::optional<Tensor> transposed = {}))

/// How layers share the multiprocessors of a GPU with a look-up of vectors, so that both run concurrently
/// (Context::multiprocessors()).
struct MultiprocessorShares {
  int products, others;
};
/// None if no kernel of linear() with ReLU for this type and `rows` can be limited to its share: one would then wait
/// for the other. `tf32`: f32 GEMMs use TF32.
std::optional<MultiprocessorShares> shares_beside_lookup(const std::optional<GpuTraits>&, DType, bool tf32,
                                                         int64_t rows);

/// Whether a GEMM with `rows` x `columns` results, divided into the smallest tiles, keeps more than half of a GPU busy.
/// False on a CPU.
bool keeps_gpu_busy(const std::optional<GpuTraits>&, int64_t rows, int64_t columns);

/// Allows GEMMs on the context's stream too, concurrently with those of the compute stream; call it before the first.
/// All such streams of a Runtime share one workspace, so their GEMMs must not overlap.
HCTR_OP(void add_product_stream(Context&))

}  // namespace hctr::ops
