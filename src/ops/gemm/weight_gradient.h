// The gradient of the weights of a fully connected layer: a product that nobody reads before the backward pass ends.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/device/gpu_traits.h"
#include "core/device/op.h"

namespace hctr::ops {

/// Which operands another operator searches for overflow, either themselves or the sums of their columns, as the
/// gradient of a bias is of d_y: a sum of numbers of f16 in f32 is finite if and only if all of them are.
struct SearchedOperands {
  bool x = false, d_y = false;
};

/// d_w = x^T d_y, sums kept in f32. One that runs `together` is among the launches that the context collects for the
/// end of the backward pass (Context::last_launches()): x and d_y must not change until those are started.
/// Shapes: x [batch, in], d_y [batch, out], d_w [in, out]; any row strides. Dtypes: x and d_y f32 f16 bf16, alike; d_w
/// as these, or f32.
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

/// Whether such a product leaves multiprocessors idle when it runs alone: its result has fewer tiles of 128 x 128 than
/// there are, and it has too few rows to be divided there. Then it should run with others.
bool leaves_multiprocessors_idle(int64_t batch, int64_t in, int64_t out, int64_t multiprocessors);

namespace hopper {
/// Adds the product to the queue of the context, which merges it with others. For GPUs of compute capability 9.0, x and
/// d_y of two bytes that hctr::cuda::takes_tensor_map(), and d_w of f32. A product's bits depend on its shape alone.
void add_weight_gradient(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// The same in plain f32, where runs_f32_products(). The order of a product's sums, and so its bits, depend on the
/// other products of the launch too.
void add_weight_gradient_f32(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// The same for x and d_y of f32, of which the product takes the upper 19 bits (TF32), where
/// runs_weight_gradients_tf32(). Its bits depend on the others too.
void add_weight_gradient_tf32(Context&, Tensor x, Tensor d_y, Tensor d_w);
/// Whether the context's stream has memory for this. On GPUs.
bool runs_weight_gradients_tf32(Context&);

/// The indices of equal numbers in groups of at most `most`, in their order; those of smaller numbers first.
std::vector<std::vector<size_t>> groups_of_equal(std::span<const int> numbers, size_t most);
}  // namespace hopper

}  // namespace hctr::ops
