#include "ops/f32_product.h"

#include <algorithm>
#include <limits>

#include "device/cuda_libraries.cuh"
#include "device/launch.cuh"
#include "device/tensor_map.cuh"

namespace hctr::ops {

bool hopper::has_memory_for_sums(Context& ctx, int64_t bytes) {
  Runtime& runtime = ctx.runtime();
  auto& libraries = *runtime.cuda_libraries();
  if (ctx.stream().handle != runtime.compute_stream().handle && !libraries.side_streams.contains(ctx.stream().handle))
    return false;
  const int64_t multiprocessors = hctr::cuda::multiprocessors();
  return multiprocessors <= Runtime::CudaLibraries::kMostPieces &&
         static_cast<size_t>(multiprocessors * bytes) <= libraries.blas_workspace.bytes();
}

bool hopper::runs_f32_products(Context& ctx) {
  const RuntimeOptions& options = ctx.runtime().options();
  return ctx.multiprocessors() == 0 && !options.tf32 && !options.tf32x3 && hctr::cuda::compute_capability() == 90 &&
         has_memory_for_sums(ctx, kF32TileBytes);
}

bool hopper::takes_f32_product(Context& ctx, F32Use use, std::initializer_list<Tensor> tensors, int64_t m, int64_t n,
                               int64_t k) {
  const auto takes = [](const Tensor& t) { return t.dtype() == DType::f32 && hctr::cuda::takes_tensor_map(t); };
  return runs_f32_products(ctx) && std::ranges::all_of(tensors, takes) &&
         std::max({m, n, k}) <= std::numeric_limits<int32_t>::max() &&
         f32_product_gains(use, m, n, k, hctr::cuda::multiprocessors());
}

}  // namespace hctr::ops
