#include "ops/gemm/fused_product.h"

#include <algorithm>

#include "core/device/cuda_runtime_calls.h"
#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"

namespace hctr::ops {

bool hopper::takes_fused_product(Context& ctx, std::initializer_list<Tensor> operands, const Tensor& result) {
  const Runtime& runtime = ctx.runtime();
  const bool tf32 = runtime.options().tf32 && !runtime.options().tf32x3;
  if (hctr::cuda::compute_capability() != 90 || ctx.stream().handle != runtime.compute_stream().handle) return false;
  const auto takes = [&](const Tensor& t) {
    return hctr::cuda::takes_tensor_map(t) && (size_of(t.dtype()) == 2 || tf32);
  };
  const int64_t unit = 16 / static_cast<int64_t>(size_of(result.dtype()));
  const int64_t missing = (result.dim(1) + unit - 1) / unit * unit - result.dim(1);
  return takes(result) && missing <= result.spec().zero_columns && std::ranges::all_of(operands, takes);
}

}  // namespace hctr::ops
