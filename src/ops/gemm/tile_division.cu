#include "ops/gemm/tile_division.cuh"

#include "core/device/cuda_libraries.cuh"
#include "core/device/cuda_runtime_calls.h"

namespace hctr::ops {

bool hopper::has_exchange_memory(Context& ctx, int64_t tile_bytes) {
  Runtime& runtime = ctx.runtime();
  auto& libraries = *runtime.cuda_libraries();
  if (ctx.stream().handle != runtime.compute_stream().handle && !libraries.side_streams.contains(ctx.stream().handle))
    return false;
  const int64_t multiprocessors = hctr::cuda::multiprocessors();
  return multiprocessors <= Runtime::CudaLibraries::kMostPieces &&
         static_cast<size_t>(multiprocessors * tile_bytes) <= libraries.blas_workspace.bytes();
}

hopper::SumExchange hopper::sum_exchange(Context& ctx) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  const bool aside = ctx.stream().handle != ctx.runtime().compute_stream().handle;
  const Buffer& sums = aside ? *libraries.side_workspace : libraries.blas_workspace;
  return {reinterpret_cast<float*>(sums.data()),
          reinterpret_cast<uint32_t*>(libraries.piece_flags.data()) + (aside ? libraries.kMostPieces : 0)};
}

}  // namespace hctr::ops
