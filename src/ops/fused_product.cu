#include "ops/fused_product.h"

#include <algorithm>

#include "device/cuda_runtime_calls.h"
#include "device/tensor_map.cuh"

namespace hctr::ops {

bool hopper::takes_fused_product(Context& ctx, std::initializer_list<Tensor> matrices) {
  const Runtime& runtime = ctx.runtime();
  const bool tf32 = runtime.options().tf32 && !runtime.options().tf32x3;
  return hctr::cuda::compute_capability() == 90 && ctx.stream().handle == runtime.compute_stream().handle &&
         std::ranges::all_of(matrices, [&](const Tensor& t) {
           return hctr::cuda::takes_tensor_map(t) && (size_of(t.dtype()) == 2 || tf32);
         });
}

}  // namespace hctr::ops
