// Pipelines in shared memory, in the terms of CUTLASS. A producer acquires a free stage and fills it. The consumers
// wait for the full stage, read it and release it. Only sources compiled for sm_90a include this file, as with
// ops/gemm/hopper.cuh.
#pragma once

#include "ops/gemm/hopper.cuh"

namespace hctr::ops::hopper {

/// A position in a pipeline: the stage, and the parity of the phase of its barriers. Every thread that uses a pipeline
/// has its own state and advances it.
template <int kStages>
struct PipelineState {
  int stage = 0;
  uint32_t parity = 0;

  /// The position after `count` steps.
  static __device__ PipelineState after(int count) {
    return {count % kStages, static_cast<uint32_t>(count / kStages % 2)};
  }
  __device__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

/// The barriers of a pipeline; a member of the storage in shared memory. `full` of a stage completes a phase when the
/// stage is filled, `empty` when it is released.
template <int kStages>
struct Pipeline {
  using State = PipelineState<kStages>;
  uint64_t full[kStages], empty[kStages];

  /// Called by one thread, before fence_mbarrier_init() and a barrier of the block. `producers`: calls of
  /// producer_expect_tx() or producer_commit() that fill a stage. `consumers`: calls of consumer_release() that release
  /// it.
  __device__ void init(uint32_t producers, uint32_t consumers) {
    for (int s = 0; s < kStages; ++s) {
      mbarrier_init(full + s, producers);
      mbarrier_init(empty + s, consumers);
    }
  }

  /// Waits until the stage is free. In the first phase, all stages are free.
  __device__ void producer_acquire(const State& at) { mbarrier_wait(empty + at.stage, at.parity ^ 1); }
  /// Announces `bytes` of TMA loads, which arrive at producer_barrier().
  __device__ void producer_expect_tx(int stage, uint32_t bytes) { mbarrier_arrive_expect_tx(full + stage, bytes); }
  __device__ uint64_t* producer_barrier(int stage) { return full + stage; }
  /// Ends the writes of this thread to the stage, for a producer without TMA loads.
  __device__ void producer_commit(int stage) { mbarrier_arrive(full + stage); }
  /// Waits until the consumers have released this phase of the stage.
  __device__ void producer_wait_released(const State& at) { mbarrier_wait(empty + at.stage, at.parity); }

  __device__ void consumer_wait(const State& at) { mbarrier_wait(full + at.stage, at.parity); }
  __device__ void consumer_release(int stage) { mbarrier_arrive(empty + stage); }
};

/// Consumer: calls multiply(stage, step) for `steps` steps. multiply() starts the wgmmas of a step and commits their
/// group. A stage is released once its wgmmas have completed, during the wgmmas of the next stage. `releases`: whether
/// this thread releases stages for its warp group. kRolled: the compiler must not peel steps off the loop, because the
/// body is long for the instruction cache.
template <bool kRolled, int kStages, class Multiply>
__device__ __forceinline__ void consume_stages(Pipeline<kStages>& pipeline, PipelineState<kStages>& at, int steps,
                                               bool releases, const Multiply& multiply) {
  int before = -1;
  const auto consume = [&](int step) {
    pipeline.consumer_wait(at);
    multiply(at.stage, step);
    wgmma_wait_group<1>();
    if (before >= 0 && releases) pipeline.consumer_release(before);
    before = at.stage;
    at.advance();
  };
  if constexpr (kRolled) {
#pragma unroll 1
    for (int step = 0; step < steps; ++step) consume(step);
  } else {
    for (int step = 0; step < steps; ++step) consume(step);
  }
  wgmma_wait_group<0>();
  if (releases) pipeline.consumer_release(before);
}

}  // namespace hctr::ops::hopper
