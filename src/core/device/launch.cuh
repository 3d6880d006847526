// Kernel launches: every launch of the program goes through this file.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cuda/std/tuple>
#include <nv/target>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/device/context.h"
#include "core/device/cuda_check.cuh"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/lockstep.h"
#include "core/device/scoring_scope.h"

namespace hctr::cuda {

struct Grid {
  int64_t blocks = 0;
  int threads = 256;
  size_t shared_bytes = 0;
  bool early = false;  ///< whether the kernel begins with start_early()
};

/// Must be the first statement of a kernel launched with Grid::early (programmatic dependent launch, compute capability
/// 9.0 and newer). The kernel's blocks may start before the previous kernel in the stream has ended. Each block waits
/// here until that kernel has ended and its writes are visible. The next kernel may start once all blocks of this
/// kernel have passed this statement. The GPU thereby overlaps launch latency with running kernels.
__device__ inline void start_early() {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (cudaGridDependencySynchronize(); cudaTriggerProgrammaticLaunchCompletion();))
}

/// Sets Grid::early, for a kernel that begins with start_early().
inline Grid early(Grid grid) {
  grid.early = true;
  return grid;
}

inline bool is_scoring() { return ScoringScope::rules() != nullptr; }

/// Sets Grid::early for scoring only. In training, a kernel that starts early would occupy multiprocessors while it
/// waits, although other streams need them.
inline Grid early_in_scoring(Grid grid) {
  grid.early = is_scoring();
  return grid;
}

/// start_early() for a kernel launched with early_in_scoring(). `scores`: is_scoring() at the launch. In training, the
/// next kernel starts only after this kernel has ended. An earlier start made DCN at 512 samples 2 % slower.
__device__ inline void start_early_in_scoring(bool scores) {
  if (scores) start_early();
}

/// Returns the number of blocks that gives each multiprocessor of the current device `per_multiprocessor` blocks. Only
/// for kernels whose result does not depend on the number of blocks.
inline int64_t blocks_of_device(int per_multiprocessor) { return int64_t{multiprocessors()} * per_multiprocessor; }

/// A grid with one thread per item, limited to `most_blocks` blocks, so the kernel must have a grid-stride loop.
inline Grid grid_for(int64_t items, int threads, int64_t most_blocks) {
  return {std::min((items + threads - 1) / threads, most_blocks), threads, 0};
}
inline Grid grid_for(int64_t items, int threads = 256) { return grid_for(items, threads, blocks_of_device(32)); }

/// Calls `work(context)`, or adds `work` to the context's launch queue if there is one. For work that is not a single
/// kernel, such as a CUB call.
template <class Work>
void enqueue(Context& ctx, const char* name, Work work) {
  if (!ctx.queue()) return work(ctx);
  ctx.queue()->add({.start_single = std::move(work), .name = name});
}

/// Starts a kernel on the context's stream. `arguments`: the addresses of the kernel's arguments. Errors: Error(device)
/// naming the kernel.
inline void start_kernel(Context& ctx, const char* name, const Grid& grid, const void* kernel, void** arguments) {
  constexpr size_t kSharedWithoutAsking = 48 * 1024;
  if (grid.shared_bytes > kSharedWithoutAsking)
    HCTR_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared_bytes)));
  in_context(
      [&] { return cat("starting kernel ", name, " with ", grid.blocks, " blocks of ", grid.threads, " threads"); },
      [&] {
        cudaLaunchAttribute attribute{};
        cudaLaunchConfig_t config{};
        config.gridDim = static_cast<unsigned>(grid.blocks);
        config.blockDim = static_cast<unsigned>(grid.threads);
        config.dynamicSmemBytes = grid.shared_bytes;
        config.stream = stream_of(ctx.stream());
        config.attrs = &attribute;
        // Launch early only with few blocks, because many waiting blocks would occupy multiprocessors that kernels of
        // other streams need.
        if (grid.early && grid.blocks <= multiprocessors() && ctx.runtime().can_start_early()) {
          attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
          attribute.val.programmaticStreamSerializationAllowed = 1;
          config.numAttrs = 1;
        }
        HCTR_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
        if (ctx.runtime().options().sync_launches) ctx.stream().synchronize();
      });
}

/// Launches a kernel on the context's stream. Does nothing if the grid has no blocks. Errors: Error(device) naming the
/// kernel.
template <class... Parameters, class... Arguments>
void launch(Context& ctx, const char* name, Grid grid, void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.blocks == 0) return;
  enqueue(ctx, name,
          [=, values = std::tuple<Parameters...>(static_cast<Parameters>(std::forward<Arguments>(arguments))...)](
              Context& now) {
            std::apply(
                [&](const Parameters&... value) {
                  void* at[] = {const_cast<void*>(static_cast<const void*>(&value))..., nullptr};
                  start_kernel(now, name, grid, reinterpret_cast<const void*>(kernel), at);
                },
                values);
          });
}

/// Describes the blocks of a lockstep launch that work on one job: their number, and the index of this block among
/// them. A kernel body uses BlockRange in place of blockIdx and gridDim.
struct BlockRange {
  int64_t block, blocks;
  __device__ int64_t thread_index() const { return block * blockDim.x + threadIdx.x; }
  __device__ int64_t thread_count() const { return blocks * blockDim.x; }
};

/// The jobs of one launch, passed as a kernel parameter of at most kBytes bytes. A job holds the arguments of the
/// kernel body. Blocks first_block[j] to first_block[j + 1] - 1 work on job j.
template <class Job, size_t kBytes = 4096 - 64>
struct JobList {
  static constexpr int kMost = std::max<int>(1, (kBytes - 16) / (sizeof(Job) + sizeof(int32_t)));
  int count = 0;
  int32_t first_block[kMost + 1] = {};
  Job jobs[kMost];
};
/// A list for a launch of many jobs, as large as kernel parameters may be from compute capability 7.0 on. Larger
/// parameters take longer to send, so launches of few jobs use the smaller list.
template <class Job>
using LongJobList = JobList<Job, 32764 - 64>;
/// Whether the jobs of this type are so large that a JobList holds fewer than 32 of them. In that case a second kernel
/// exists, which takes a LongJobList.
template <class Job>
constexpr bool kHasLongList = JobList<Job>::kMost < 32;

template <auto kBody, class List>
__device__ void run_jobs(const List& list) {
  start_early();
  int j = 0;
  const auto block = static_cast<int32_t>(blockIdx.x);
  if constexpr (List::kMost < 64)
    while (j + 1 < list.count && block >= list.first_block[j + 1]) ++j;
  else
    for (int last = list.count - 1; j < last;) {
      const int middle = (j + last + 1) / 2;
      if (block >= list.first_block[middle])
        j = middle;
      else
        last = middle - 1;
    }
  const BlockRange range{block - list.first_block[j], list.first_block[j + 1] - list.first_block[j]};
  ::cuda::std::apply([&](const auto&... parameters) { kBody(range, parameters...); }, list.jobs[j]);
}

template <auto kBody, class List>
__global__ void jobs_kernel(const __grid_constant__ List list) {
  run_jobs<kBody>(list);
}

/// Like jobs_kernel(), but with registers limited so that `kBlocks` blocks fit on a multiprocessor.
template <auto kBody, class List, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) bounded_jobs_kernel(const __grid_constant__ List list) {
  run_jobs<kBody>(list);
}

template <class... Parameters>
::cuda::std::tuple<std::remove_cvref_t<Parameters>...> job_of(void (*)(BlockRange, Parameters...));

/// A launch of the device function kBody that a Lockstep can merge with launches of other contexts. The first parameter
/// of kBody is a BlockRange; the other parameters may be references. kThreads: threads per block. kBlocks: limits
/// registers so that this many blocks fit on a multiprocessor; 0: no limit. kSharedBytes: dynamic shared memory per
/// block. kEarly: Grid::early.
template <auto kBody, int kThreads, int kBlocks, size_t kSharedBytes, bool kEarly = true>
struct LockstepLaunch {
  using Job = decltype(job_of(kBody));

  template <class... Arguments>
  static void enqueue(Context& ctx, const char* name, int64_t blocks, Arguments&&... arguments) {
    if (blocks == 0) return;
    const Job job(std::forward<Arguments>(arguments)...);
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(&job), sizeof job);
    LaunchQueue::Launch one{.start_merged = start_merged, .name = name, .blocks = blocks, .arguments = bytes};
    if (LaunchQueue* const queue = ctx.queue()) {
      one.arguments = queue->keep(bytes);
      return queue->add(std::move(one));
    }
    const LaunchQueue::Launch* only = &one;
    start_merged(ctx, {&only, 1});
  }

  template <class List>
  static constexpr auto kernel() {
    if constexpr (kBlocks > 0)
      return bounded_jobs_kernel<kBody, List, kThreads, kBlocks>;
    else
      return jobs_kernel<kBody, List>;
  }

  /// Starts the first launches, at most List::kMost, as one kernel. Returns the number of started launches.
  template <class List>
  static size_t start_first(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
    // The list is not initialized and not copied, because it has up to 32 KB. The kernel reads only the first `count`
    // jobs.
    alignas(List) std::byte memory[sizeof(List)];
    auto& list = *reinterpret_cast<List*>(memory);
    list.count = list.first_block[0] = 0;
    for (; list.count < List::kMost && list.count < static_cast<int>(launches.size()); ++list.count) {
      const LaunchQueue::Launch& one = *launches[static_cast<size_t>(list.count)];
      std::memcpy(static_cast<void*>(&list.jobs[list.count]), one.arguments.data(), sizeof(Job));
      list.first_block[list.count + 1] = list.first_block[list.count] + static_cast<int32_t>(one.blocks);
    }
    void* argument = memory;
    start_kernel(ctx, launches[0]->name, {list.first_block[list.count], kThreads, kSharedBytes, kEarly},
                 reinterpret_cast<const void*>(kernel<List>()), &argument);
    return static_cast<size_t>(list.count);
  }

  static void start_merged(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
    while (!launches.empty()) {
      size_t started = 0;
      if constexpr (kHasLongList<Job>)
        if (launches.size() > JobList<Job>::kMost) started = start_first<LongJobList<Job>>(ctx, launches);
      if (started == 0) started = start_first<JobList<Job>>(ctx, launches);
      launches = launches.subspan(started);
    }
  }
};

template <auto kBody, int kThreads, int kBlocks = 0, size_t kSharedBytes = 0, class... Arguments>
void launch_lockstep(Context& ctx, const char* name, int64_t blocks, Arguments&&... arguments) {
  LockstepLaunch<kBody, kThreads, kBlocks, kSharedBytes>::enqueue(ctx, name, blocks,
                                                                  std::forward<Arguments>(arguments)...);
}

/// Like launch_lockstep(), but the kernel starts after the previous kernel has ended.
template <auto kBody, int kThreads, class... Arguments>
void launch_lockstep_late(Context& ctx, const char* name, int64_t blocks, Arguments&&... arguments) {
  LockstepLaunch<kBody, kThreads, 0, 0, false>::enqueue(ctx, name, blocks, std::forward<Arguments>(arguments)...);
}

/// Launches kBody with ctx.multiprocessors() blocks, each of which fills a multiprocessor. The kernel therefore runs on
/// only this number of multiprocessors; smaller blocks would be spread over all of them. For bodies that work with any
/// number of blocks.
template <auto kBody, int kThreads, class... Arguments>
void launch_held(Context& ctx, const char* name, Arguments&&... arguments) {
  using Job = decltype(job_of(kBody));
  JobList<Job> list;
  list.jobs[0] = Job(std::forward<Arguments>(arguments)...);
  list.first_block[++list.count] = ctx.multiprocessors();
  launch(ctx, name, early({ctx.multiprocessors(), kThreads}), bounded_jobs_kernel<kBody, JobList<Job>, kThreads, 1>,
         list);
}

template <auto kBody, class... Parameters>
__global__ void single_kernel(Parameters... parameters) {
  start_early();
  kBody(BlockRange{blockIdx.x, gridDim.x}, parameters...);
}

/// Launches kBody without a job list, so Lockstep never merges the launch. For bodies that need many registers, because
/// arguments from a job list would occupy additional registers.
template <auto kBody, int kThreads, class... Arguments>
void launch_single(Context& ctx, const char* name, int64_t blocks, Arguments... arguments) {
  launch(ctx, name, {blocks, kThreads, 0, true}, single_kernel<kBody, Arguments...>, arguments...);
}

/// The index of this thread in the grid, and the number of threads in the grid: for grid-stride loops.
__device__ inline int64_t thread_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t thread_count() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace hctr::cuda
