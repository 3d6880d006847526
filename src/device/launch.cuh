// The one place that starts kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "device/context.h"
#include "device/cuda_check.cuh"

namespace hctr::cuda {

struct Grid {
  int64_t blocks = 0;
  int threads = 256;
  size_t shared_bytes = 0;
};

/// One thread for each of `items`, with a grid-stride loop in the kernel for what exceeds `most_blocks`.
inline Grid grid_for(int64_t items, int threads = 256, int64_t most_blocks = 132 * 32) {
  return {std::min((items + threads - 1) / threads, most_blocks), threads, 0};
}

/// Starts a kernel on the context's stream. No work, no launch. Errors: Error(device) naming the kernel.
template <class... Parameters, class... Arguments>
void launch(Context& ctx, const char* name, Grid grid, void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.blocks == 0) return;
  constexpr size_t kSharedWithoutAsking = 48 * 1024;
  if (grid.shared_bytes > kSharedWithoutAsking)
    HCTR_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes)));
  in_context([&] { return cat("starting kernel ", name, " with ", grid.blocks, " blocks of ", grid.threads, " threads"); },
             [&] {
               kernel<<<static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.threads), grid.shared_bytes,
                        stream_of(ctx.stream())>>>(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
               HCTR_CHECK(cudaGetLastError());
               if (ctx.runtime().options().sync_launches) ctx.stream().synchronize();
             });
}

/// The shared memory that one block of the current device may ask for.
inline size_t most_shared_bytes() {
  int device = 0, bytes = 0;
  HCTR_CHECK(cudaGetDevice(&device));
  HCTR_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<size_t>(bytes);
}

/// The index of this thread among all, and the number of all: for grid-stride loops.
__device__ inline int64_t thread_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t thread_count() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace hctr::cuda
