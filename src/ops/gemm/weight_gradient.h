// The wgrad of a fully connected layer: a GEMM whose result is not read before the backward pass ends.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/device/gpu_traits.h"
#include "core/device/op.h"

namespace hctr::ops {

/// Which operands another operator checks for overflow, either themselves or their column sums, as the bias gradient is
/// of d_y: a sum of f16 numbers in f32 is finite if and only if all of them are.
struct SearchedOperands {
  bool x = false, d_y = false;
};

/// d_w = x^T d_y, accumulated in f32. A wgrad with `together` joins the launches that the context collects for the end
/// of the backward pass (Context::last_launches()): x and d_y must not change until those start. Shapes: x [batch, in],
/// d_y [batch, out], d_w [in, out]; any row strides. Dtypes: x and d_y f32 f16 bf16, alike; d_w the same, or f32.
HCTR_OP(void weight_gradient(Context&, Tensor x, Tensor d_y, Tensor d_w, SearchedOperands searched = {}))

/// How weight_gradient() is best run: at once; together with those of other layers in one kernel; or at once on a
/// stream of its own (add_product_stream), concurrently with the gradients of the layers before.
enum class WeightGradientRun { in_order, together, apart };
/// The same for equal shapes, dtypes and contexts. On the CPU always in_order.
HCTR_OP(void choose_weight_gradient_run(Context&, Tensor x, Tensor d_y, Tensor d_w, WeightGradientRun& run))
/// The same in a backward pass on the compute stream of a GPU that need not be here, and whose launches are collected;
/// none: a CPU. Tensors are described alone: nothing is read.
WeightGradientRun planned_weight_gradient_run(const std::optional<GpuTraits>&, const RuntimeOptions&, const Tensor& x,
                                              const Tensor& d_y, const Tensor& d_w);
/// `merges`: whether the context collects launches and has memory for parts of sums.
WeightGradientRun weight_gradient_run(const GpuTraits&, bool tf32x3, bool merges, const Tensor& x, const Tensor& d_y,
                                      const Tensor& d_w);

/// Whether such a GEMM alone leaves multiprocessors idle: its result has fewer 128 x 128 tiles than multiprocessors,
/// and it has too few rows for split-K. Then it should run with others.
bool leaves_multiprocessors_idle(int64_t batch, int64_t in, int64_t out, int64_t multiprocessors);

namespace hopper {
/// Adds the GEMM to the queue of the context, which merges it with others. For GPUs of compute capability 9.0, x and
/// d_y of two bytes that hctr::cuda::takes_tensor_map(), and d_w of f32. A GEMM's bits depend on its shape alone.
void add_weight_gradient(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// The same in plain f32, where runs_f32_products(). The order of a GEMM's sums, and so its bits, depend on the
/// other GEMMs of the launch too.
void add_weight_gradient_f32(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// The same for x and d_y of f32, of which the GEMM takes the upper 19 bits (TF32), where
/// runs_weight_gradients_tf32(). Its bits depend on the others too.
void add_weight_gradient_tf32(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// Whether the context's stream has memory for this. On GPUs.
bool runs_weight_gradients_tf32(Context&);

/// The indices of equal numbers in groups of at most `most`, in their order; those of smaller numbers first.
std::vector<std::vector<size_t>> groups_of_equal(std::span<const int> numbers, size_t most);
}  // namespace hopper

}  // namespace hctr::ops
