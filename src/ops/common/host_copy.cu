// A thread copies 16 bytes at a time. With `done`, one block copies everything, because all threads must have finished
// before thread 0 writes *done.
#include "core/device/launch.cuh"
#include "ops/common/host_copy.h"

namespace hctr::ops {
namespace {

constexpr int kCopyThreads = 512;

struct HostCopies {
  HostCopy copy[kMostHostCopies];
  int count = 0;
};

__global__ void __launch_bounds__(kCopyThreads)
    copy_with_host_kernel(const __grid_constant__ HostCopies copies, volatile uint32_t* done) {
  hctr::cuda::start_early();
  for (int c = 0; c < copies.count; ++c) {
    const HostCopy& copy = copies.copy[c];
    const auto units = static_cast<int64_t>((copy.bytes + 15) / 16);
    for (int64_t i = hctr::cuda::thread_index(); i < units; i += hctr::cuda::thread_count())
      reinterpret_cast<uint4*>(copy.to)[i] = reinterpret_cast<const uint4*>(copy.from)[i];
  }
  if (!done) return;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *done = 1;
}

}  // namespace

void cuda::copy_with_host(Context& ctx, std::span<const HostCopy> copies, uint32_t* done) {
  constexpr int64_t kMostBlocks = 16;
  HostCopies list;
  int64_t units = 1;
  for (const HostCopy& copy : copies) {
    list.copy[list.count++] = copy;
    units = std::max(units, static_cast<int64_t>((copy.bytes + 15) / 16));
  }
  hctr::cuda::Grid grid = hctr::cuda::grid_for(units, kCopyThreads, done ? 1 : kMostBlocks);
  // Without `done`, this kernel is the first node of a graph, so it has no preceding kernel to overlap with.
  grid.early = done != nullptr;
  hctr::cuda::launch(ctx, "copy_with_host", grid, copy_with_host_kernel, list, done);
}

}  // namespace hctr::ops
