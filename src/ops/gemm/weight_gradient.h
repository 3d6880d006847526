// The wgrad of a fully connected layer: a GEMM whose result is first read after the backward pass.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/device/gpu_traits.h"
#include "core/device/op.h"

namespace hctr::ops {

/// Operands that another operator already checks for overflow, either directly or through their column sums. For
/// example, the bias gradient checks d_y through column sums. An f32 sum of f16 values is finite if and only if all the
/// f16 values are finite.
struct SearchedOperands {
  bool x = false, d_y = false;
};

/// d_w = x^T d_y, accumulated in f32. A wgrad with WeightGradientRun::together joins the launches that the context
/// collects for the end of the backward pass (Context::last_launches()). x and d_y must not change until the collected
/// launches start. Shapes: x [batch, in], d_y [batch, out], d_w [in, out]; any row strides. Dtypes: x and d_y f32 f16
/// bf16, equal; d_w the same, or f32.
HCTR_OP(void weight_gradient(Context&, Tensor x, Tensor d_y, Tensor d_w, SearchedOperands searched = {}))

/// The best way to run weight_gradient(). in_order: immediately on the compute stream. together: grouped with wgrads of
/// other layers in one kernel. apart: immediately on a side stream (add_product_stream()), overlapping the gradients of
/// upstream layers.
enum class WeightGradientRun { in_order, together, apart };
/// Chooses the way to run weight_gradient(); deterministic for equal shapes, dtypes and contexts. On the CPU always
/// in_order.
HCTR_OP(void choose_weight_gradient_run(Context&, Tensor x, Tensor d_y, Tensor d_w, WeightGradientRun& run))
/// Predicts choose_weight_gradient_run() from the specs of the tensors only. Assumes a backward pass that runs on the
/// compute stream of the described GPU (none: a CPU) and collects launches.
WeightGradientRun planned_weight_gradient_run(const std::optional<GpuTraits>&, const RuntimeOptions&, const Tensor& x,
                                              const Tensor& d_y, const Tensor& d_w);
/// The rule of choose_weight_gradient_run(). `merges`: the context collects launches and has exchange memory for
/// partial sums.
WeightGradientRun weight_gradient_run(const GpuTraits&, bool tf32x3, bool merges, const Tensor& x, const Tensor& d_y,
                                      const Tensor& d_w);

/// Whether a GEMM of this shape leaves multiprocessors idle if run alone: its result has fewer 128 x 128 tiles than
/// there are multiprocessors, and the batch is too small for split-K. The GEMM should then be grouped with others.
bool leaves_multiprocessors_idle(int64_t batch, int64_t in, int64_t out, int64_t multiprocessors);

namespace hopper {
/// Adds the GEMM to the launch queue of the context; the queue merges the GEMM with others. Requires compute capability
/// 9.0, two-byte x and d_y that satisfy hctr::cuda::takes_tensor_map(), and f32 d_w. The bits of the result depend on
/// the GEMM's shape only.
void add_weight_gradient(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// Like add_weight_gradient(), in full f32. Requires runs_f32_products(). The bits of the result also depend on the
/// other GEMMs of the launch, because they affect the summation order.
void add_weight_gradient_f32(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// Like add_weight_gradient(), for f32 x and d_y. The GEMM uses the upper 19 bits of x and d_y (TF32). Requires
/// runs_weight_gradients_tf32(). The bits of the result also depend on the other GEMMs of the launch.
void add_weight_gradient_tf32(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// Whether the context's stream has the exchange memory of add_weight_gradient_tf32(). GPU only.
bool runs_weight_gradients_tf32(Context&);

/// Groups the indices i with equal numbers[i]. Groups are in ascending order of numbers[i]. A group has at most `most`
/// indices, in ascending order.
std::vector<std::vector<size_t>> groups_of_equal(std::span<const int> numbers, size_t most);
}  // namespace hopper

}  // namespace hctr::ops
