#include "ops/gemm/f32_product.h"

#include <algorithm>
#include <limits>

#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"

namespace hctr::ops {

bool hopper::runs_f32_products(Context& ctx) {
  const Runtime& runtime = ctx.runtime();
  return ctx.multiprocessors() == 0 && !runtime.options().tf32 && !runtime.options().tf32x3 &&
         hctr::cuda::compute_capability() == 90 && has_exchange_memory(ctx);
}

bool hopper::takes_f32_product(Context& ctx, F32Use use, std::initializer_list<Tensor> tensors, int64_t m, int64_t n,
                               int64_t k) {
  const auto takes = [](const Tensor& t) { return t.dtype() == DType::f32 && hctr::cuda::takes_tensor_map(t); };
  return runs_f32_products(ctx) && std::ranges::all_of(tensors, takes) &&
         std::max({m, n, k}) <= std::numeric_limits<int32_t>::max() &&
         f32_product_gains(use, m, n, k, hctr::cuda::multiprocessors());
}

}  // namespace hctr::ops
