// The one place that starts kernels.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cuda/std/tuple>
#include <span>
#include <tuple>
#include <utility>

#include "device/context.h"
#include "device/cuda_check.cuh"
#include "device/lockstep.h"

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

/// What stands between `work(context)` and the device: a queue, where the context has one. For work that is not one
/// kernel.
template <class Work>
void give(Context& ctx, const char* name, Work work) {
  if (!ctx.queue()) return work(ctx);
  ctx.queue()->add({.alone = std::move(work), .name = name});
}

/// Starts a kernel on the context's stream. No work, no launch. Errors: Error(device) naming the kernel.
template <class... Parameters, class... Arguments>
void launch(Context& ctx, const char* name, Grid grid, void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.blocks == 0) return;
  give(ctx, name,
       [=, values = std::tuple<Parameters...>(static_cast<Parameters>(std::forward<Arguments>(arguments))...)](
           Context& now) {
         constexpr size_t kSharedWithoutAsking = 48 * 1024;
         if (grid.shared_bytes > kSharedWithoutAsking)
           HCTR_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(grid.shared_bytes)));
         in_context(
             [&] {
               return cat("starting kernel ", name, " with ", grid.blocks, " blocks of ", grid.threads, " threads");
             },
             [&] {
               std::apply(
                   [&](const Parameters&... value) {
                     kernel<<<static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.threads),
                              grid.shared_bytes, stream_of(now.stream())>>>(value...);
                   },
                   values);
               HCTR_CHECK(cudaGetLastError());
               if (now.runtime().options().sync_launches) now.stream().synchronize();
             });
       });
}

/// The blocks of a launch that work on one of several jobs, and which of them this is.
struct Share {
  int64_t block, blocks;
  __device__ int64_t thread_index() const { return block * blockDim.x + threadIdx.x; }
  __device__ int64_t thread_count() const { return blocks * blockDim.x; }
};

/// Jobs that one launch does; each has blocks of its own, numbered from first_block on.
template <class Job>
struct JobList {
  static constexpr size_t kParameterBytes = 4096 - 64;  // what a launch may bring along on every GPU and driver
  static constexpr int kMost = std::max<int>(1, (kParameterBytes - 16) / (sizeof(Job) + sizeof(int32_t)));
  int count = 0;
  int32_t first_block[kMost + 1] = {};
  Job jobs[kMost];
};

template <auto kBody, class Job>
__device__ void run_jobs(const JobList<Job>& list) {
  int j = 0;
  const auto block = static_cast<int32_t>(blockIdx.x);
  while (j + 1 < list.count && block >= list.first_block[j + 1]) ++j;
  const Share share{block - list.first_block[j], list.first_block[j + 1] - list.first_block[j]};
  ::cuda::std::apply([&](const auto&... parameters) { kBody(share, parameters...); }, list.jobs[j]);
}

template <auto kBody, class Job>
__global__ void jobs_kernel(const __grid_constant__ JobList<Job> list) {
  run_jobs<kBody>(list);
}

/// With as few registers as let `kBlocks` blocks of a multiprocessor run at once.
template <auto kBody, class Job, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) dense_jobs_kernel(const __grid_constant__ JobList<Job> list) {
  run_jobs<kBody>(list);
}

template <class... Parameters>
::cuda::std::tuple<Parameters...> job_of(void (*)(Share, Parameters...));

/// Work for a body of threads, a function on the device whose first parameter is its share of the launch: what several
/// contexts in a Lockstep give next becomes one launch. kThreads: of a block. kBlocks: that a multiprocessor should run
/// at once; 0: as it comes.
template <auto kBody, int kThreads, int kBlocks>
struct SharedLaunch {
  using Job = decltype(job_of(kBody));

  template <class... Arguments>
  static void give(Context& ctx, const char* name, int64_t blocks, Arguments&&... arguments) {
    if (blocks == 0) return;
    const Job job(std::forward<Arguments>(arguments)...);
    LaunchQueue::Launch one{.together = together, .name = name, .blocks = blocks};
    one.job.resize(sizeof job);
    std::memcpy(one.job.data(), static_cast<const void*>(&job), sizeof job);
    if (ctx.queue()) return ctx.queue()->add(std::move(one));
    const LaunchQueue::Launch* alone = &one;
    together(ctx, {&alone, 1});
  }

  static constexpr auto kernel() {
    if constexpr (kBlocks > 0)
      return dense_jobs_kernel<kBody, Job, kThreads, kBlocks>;
    else
      return jobs_kernel<kBody, Job>;
  }

  static void together(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
    while (!launches.empty()) {
      JobList<Job> list;
      for (; list.count < JobList<Job>::kMost && list.count < static_cast<int>(launches.size()); ++list.count) {
        const LaunchQueue::Launch& one = *launches[static_cast<size_t>(list.count)];
        std::memcpy(static_cast<void*>(&list.jobs[list.count]), one.job.data(), sizeof(Job));
        list.first_block[list.count + 1] = list.first_block[list.count] + static_cast<int32_t>(one.blocks);
      }
      launch(ctx, launches[0]->name, {list.first_block[list.count], kThreads, 0}, kernel(), list);
      launches = launches.subspan(static_cast<size_t>(list.count));
    }
  }
};

template <auto kBody, int kThreads, int kBlocks = 0, class... Arguments>
void launch_shared(Context& ctx, const char* name, int64_t blocks, Arguments&&... arguments) {
  SharedLaunch<kBody, kThreads, kBlocks>::give(ctx, name, blocks, std::forward<Arguments>(arguments)...);
}

template <auto kBody, class... Parameters>
__global__ void alone_kernel(Parameters... parameters) {
  kBody(Share{blockIdx.x, gridDim.x}, parameters...);
}

/// The same for bodies that need many registers, where reading parameters from a list takes more: their launches are
/// never shared.
template <auto kBody, int kThreads, class... Arguments>
void launch_alone(Context& ctx, const char* name, int64_t blocks, Arguments... arguments) {
  launch(ctx, name, {blocks, kThreads, 0}, alone_kernel<kBody, Arguments...>, arguments...);
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
