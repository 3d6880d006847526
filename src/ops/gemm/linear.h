// GEMMs, and the fully connected layer.
#pragma once

#include <optional>

#include "core/device/gpu_traits.h"
#include "core/device/op.h"

namespace hctr::ops {

enum class Transpose : bool { no, yes };

/// c = op(a) op(b), accumulated in f32. CUDA uses full f32; TF32 if the Runtime allows it; or TF32x3 for large GEMMs,
/// with operands split into two TF32 values (ops/gemm/tf32_split.h). The CPU uses full f32. Overwrites c. Shapes: op(a)
/// [m, k], op(b) [k, n], c [m, n]; any row strides. Dtypes: f32 f16 bf16, all equal, or c f32. Aliasing: c must not be
/// a or b. For CPU f32 and f64, the CBLAS library computes one part of c per task; results do not depend on the number
/// of threads (ops/gemm/product_parts.h).
HCTR_OP(void matmul(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c))

/// c = op(a) op(b) + addend, in f32. The result is rounded once if the library computes the GEMM. Shapes: addend as c;
/// otherwise as in matmul(). Dtypes: all equal. Aliasing: c must not be another operand.
HCTR_OP(void matmul_plus(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor addend, Tensor c))

/// y = x W + bias, or max(x W + bias, 0) if `relu`. Shapes: x [batch, in], w [in, out], bias [out], y [batch, out]; any
/// row strides of x, w, y. Dtypes: all equal. `transposed`: the transposed copy of an f32 w, if the caller has one
/// (ops/gemm/transposed_weights.h). On Hopper, our own kernel may run instead of the library's if `relu` is set and the
/// type is a two-byte type or TF32: for small batches, and for contexts limited to some multiprocessors. Our kernel and
/// the library sum in different orders.
HCTR_OP(void linear(Context&, Tensor x, Tensor w, Tensor bias, Tensor y, bool relu = false,
                    std::optional<Tensor> transposed = {}))

/// The split of a GPU's multiprocessors between the GEMMs of layers and a concurrent lookup of vectors
/// (Context::multiprocessors()).
struct MultiprocessorShares {
  int products, others;
};
/// Chooses the shares. Returns none if no kernel of linear() with ReLU can be limited to some multiprocessors for this
/// dtype and `rows`; GEMMs and the lookup must then run one after the other. `tf32`: f32 GEMMs use TF32.
std::optional<MultiprocessorShares> shares_beside_lookup(const std::optional<GpuTraits>&, DType, bool tf32,
                                                         int64_t rows);

/// Whether a GEMM with a `rows` x `columns` result, divided into the smallest tiles, occupies more than half of a GPU.
/// False on a CPU.
bool keeps_gpu_busy(const std::optional<GpuTraits>&, int64_t rows, int64_t columns);

/// Allows GEMMs on the context's stream, concurrently with GEMMs on the compute stream. To be called before the first
/// GEMM on that stream. All streams that were allowed this way share one workspace per Runtime, so GEMMs on them must
/// not overlap.
HCTR_OP(void add_product_stream(Context&))

}  // namespace hctr::ops
