#include "ops/gemm/weight_gradient.h"

#include <map>

#include "core/device/tensor_map.h"
#include "ops/common/checks.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

bool leaves_multiprocessors_idle(int64_t batch, int64_t in, int64_t out, int64_t multiprocessors) {
  // kLeastOutputs: a wgrad with fewer outputs is only a few column sums
  constexpr int64_t kTile = 128, kMostRows = 2048, kLeastOutputs = 8;
  const int64_t tiles = ((in + kTile - 1) / kTile) * ((out + kTile - 1) / kTile);
  return batch <= kMostRows && out >= kLeastOutputs && tiles < multiprocessors;
}

std::vector<std::vector<size_t>> hopper::groups_of_equal(std::span<const int> numbers, size_t most) {
  std::map<int, std::vector<size_t>> by_number;
  for (size_t i = 0; i < numbers.size(); ++i) by_number[numbers[i]].push_back(i);
  std::vector<std::vector<size_t>> groups;
  for (const auto& [number, equal] : by_number)
    for (size_t i = 0; i < equal.size(); ++i) {
      if (i % most == 0) groups.emplace_back();
      groups.back().push_back(equal[i]);
    }
  return groups;
}

void weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w, SearchedOperands searched) {
  expect_alike("weight_gradient", {x, d_y});
  expect_shape("weight_gradient d_y", d_y, {x.dim(0), d_y.dim(1)});
  expect_shape("weight_gradient d_w", d_w, {x.dim(1), d_y.dim(1)});
  HCTR_ON_DEVICE(ctx, weight_gradient(ctx, x, d_y, d_w, searched));
}

void choose_weight_gradient_run(Context& ctx, Tensor x, Tensor d_y, Tensor d_w, WeightGradientRun& run) {
  HCTR_ON_DEVICE(ctx, choose_weight_gradient_run(ctx, x, d_y, d_w, run));
}

WeightGradientRun weight_gradient_run(const GpuTraits& gpu, bool tf32x3, bool merges, const Tensor& x,
                                      const Tensor& d_y, const Tensor& d_w) {
  using hctr::cuda::takes_tensor_map;
  if (!leaves_multiprocessors_idle(x.dim(0), x.dim(1), d_y.dim(1), gpu.multiprocessors))
    return WeightGradientRun::in_order;
  if (merges && gpu.is_hopper() && d_w.dtype() == DType::f32 && takes_tensor_map(x) && takes_tensor_map(d_y))
    return WeightGradientRun::together;
  // TF32x3 GEMMs share the memory of split operands, so they must not overlap.
  return tf32x3 ? WeightGradientRun::in_order : WeightGradientRun::apart;
}

WeightGradientRun planned_weight_gradient_run(const std::optional<GpuTraits>& gpu, const RuntimeOptions& options,
                                              const Tensor& x, const Tensor& d_y, const Tensor& d_w) {
  // The compute stream has the exchange memory that merged f32 wgrads need. TF32x3 wgrads cannot be merged.
  const bool merges = size_of(x.dtype()) == 2 || !options.tf32x3;
  return gpu ? weight_gradient_run(*gpu, options.tf32x3, merges, x, d_y, d_w) : WeightGradientRun::in_order;
}

void cpu::weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w, SearchedOperands) {
  ops::matmul(ctx, x, Transpose::yes, d_y, Transpose::no, d_w);
}

void cpu::choose_weight_gradient_run(Context&, Tensor, Tensor, Tensor, WeightGradientRun& run) {
  run = WeightGradientRun::in_order;
}

}  // namespace hctr::ops
