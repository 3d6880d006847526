// The fused kernel of the last layer and its loss.
//
// A block processes whole rows of one part of the batch. Each thread keeps some columns of a few rows in registers, in
// packs. The threads first multiply the packs by the weights. When a row's logit and the gradient of the logit are
// known, the threads compute the gradient of x and the contributions to the wgrad from the same registers. The last
// block to finish adds the losses of all blocks.
//
// Latency dominates small batches. The kernel therefore computes addresses before the preceding kernel has ended, and
// issues all loads before the first use. Each block has only one barrier, after its rows. One warp adds the losses of
// all blocks.
#pragma once

#include <cuda/atomic>

#include "core/device/launch.cuh"
#include "ops/loss/logit_loss_rows.cuh"

namespace hctr::ops {

/// Lane r returns the sum of sums[r] over the warp.
template <int R>
__device__ float own_sum(float (&sums)[R], int lane) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
#pragma unroll
    for (int r = 0; r < R; ++r) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], distance);
  float own = 0;
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (lane == r) own = sums[r];
  return own;
}

template <int N, class A>
__device__ A tree_sum(const A (&of)[N]) {
  if constexpr (N == 1) {
    return of[0];
  } else {
    A halves[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) halves[i] = of[i] + of[i + N / 2];
    return tree_sum(halves);
  }
}

/// Shared memory for reductions over the threads of a block.
template <int K, int V, int R>
struct LogitShared {
  static constexpr int kStride = kLogitThreads + 32 / V;  // avoids bank conflicts if a warp reads adjacent columns
  float products[2][kLogitWarps][R];
  double losses[kMostLogitGroups][R];
  float d_sums[kMostLogitGroups][R];
  float sums[K][2 * V][kStride];

  /// Sums `own` over the warps of a group. Lane r below R returns the sum of the `own` of lane r of each warp.
  /// `products` is double-buffered by `turn`, so that one barrier suffices.
  __device__ float over_warps(const LogitPlace& at, int turn, float own) {
    if (at.lane < R) products[turn][at.thread / 32][at.lane] = own;
    __syncthreads();
    float sum = 0;
    const int warps = at.lanes / 32, first = at.group * warps;
#pragma unroll
    for (int w = 0; w < kLogitWarps; ++w)
      if (w < warps && at.lane < R) sum += products[turn][first + w][at.lane];
    return sum;
  }
  /// The sum of sums[k][i] over the groups, for lane `lane` of each group.
  __device__ float over_groups(int k, int i, int lane, int lanes) const {
    float of_group[kMostLogitGroups];
#pragma unroll
    for (int g = 0; g < kMostLogitGroups; ++g)
      of_group[g] = g * lanes < kLogitThreads ? sums[k][i][lane + g * lanes] : 0.0f;
    return tree_sum(of_group);
  }
};

/// Device-wide fence for memory that other blocks read.
__device__ inline void logit_fence() {
  ::cuda::atomic_thread_fence(::cuda::memory_order_acq_rel, ::cuda::thread_scope_device);
}

/// One thread: writes the block's loss and the block's sum of logit gradients. Returns whether this block is the last
/// to write its results.
template <class Shared, class T>
__device__ bool write_loss_of_block(const LogitPass<T>& pass, const LogitPlace& at, const Shared& shared) {
  constexpr int R = sizeof(shared.losses[0]) / sizeof(double);
  const auto used = static_cast<int>(min(int64_t{at.groups}, at.end - at.begin));
  double loss = 0;
  float d_sum = 0;
#pragma unroll
  for (int g = 0; g < kMostLogitGroups; ++g) {
    if (g >= used) continue;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      loss += shared.losses[g][r];
      d_sum += shared.d_sums[g][r];
    }
  }
  pass.losses[blockIdx.x] = loss;
  logit_fence();
  // the last block wraps the counter to 0
  const uint32_t last = gridDim.x - 1, done = atomicInc(pass.blocks_done, last);
  pass.sums[blockIdx.x * pass.part_width + 2 * pass.width] = d_sum;
  return done == last;
}

/// One warp: sums the losses of all blocks by a tree reduction. All blocks must have written their losses.
template <class T>
__device__ void add_up_losses(const LogitPass<T>& pass, int lane, int32_t global_samples) {
  constexpr int kOfLane = kMostLogitLossParts / 32;
  const auto parts = static_cast<int>(gridDim.x);
  double sums[kOfLane];
#pragma unroll
  for (int j = 0; j < kOfLane; ++j) sums[j] = lane + 32 * j < parts ? __ldcg(pass.losses + lane + 32 * j) : 0;
  const auto inverse = inverse_count<double>(global_samples);  // overlaps the loads
  const double sum = cuda::warp_sum(tree_sum(sums));
  if (lane != 0) return;
  *pass.loss = static_cast<float>(sum * inverse);
}

/// Writes the block's column sums for pack k of all threads.
template <int V, class Shared, class T>
__device__ void write_sums(const LogitPass<T>& pass, const LogitPlace& at, const Shared& shared, int k) {
  float* const sums = pass.sums + blockIdx.x * pass.part_width;
  const int first = k * at.lanes;
#pragma unroll 1
  for (int p = 0; p < pass.count; ++p) {
    const LogitInput<T>& input = pass.inputs[p];
    const int before = first - pass.first_pack[p], begin = max(before * V, 0),
              end = min((before + at.lanes) * V, static_cast<int>(input.x.size(1)));
#pragma unroll 1
    for (int j = begin + at.thread; j < end; j += kLogitThreads) {
      const int from = j / V - before, v = j % V;
      sums[input.first_column + j] = shared.over_groups(k, v, from, at.lanes);
      if (input.relu) sums[pass.width + input.first_column + j] = shared.over_groups(k, V + v, from, at.lanes);
    }
  }
}

/// K: packs of a row per thread. kOneTurn: each thread processes all its rows in one turn, at most kRowsOfOneTurn rows;
/// otherwise there are several turns of kRowsOfTurn rows.
template <int K, bool kOneTurn, class T>
__global__ void __launch_bounds__(kLogitThreads, 2)
    logit_loss_kernel(const StepState* state, const __grid_constant__ LogitPass<T> pass) {
  constexpr int V = cuda::kConcatPack<T>, R = kOneTurn ? kRowsOfOneTurn : kRowsOfTurn;
  using Pack = LogitPack<V, T>;
  __shared__ LogitShared<K, V, R> shared;
  const LogitPlace at(pass);
  Pack packs[K];
  const T* rows[K][R];
  const auto find = [&](int64_t first) {
#pragma unroll
    for (int k = 0; k < K; ++k) packs[k].find(first, at.groups, at.last, rows[k]);
  };
#pragma unroll
  for (int k = 0; k < K; ++k) packs[k].place(pass, k * at.lanes + at.lane_of_group());
  find(at.begin + at.group);
  cuda::start_early();

  LogitStep<T> step;
  step.load(state, pass.bias);
  typename Pack::Pack weights[K], in[K][R];
#pragma unroll
  for (int k = 0; k < K; ++k) weights[k] = packs[k].load_weights();
  LogitRow<T> of_row;
  const auto row_of_lane = [&](int64_t first) { return min(first + at.lane * at.groups, at.last); };
  const auto load = [&](int64_t first) {
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      // may read padding after the last column; cut() zeroes it
      for (int r = 0; r < R; ++r) in[k][r] = cuda::load_pack<V>(rows[k][r]);
    if (at.lane < R) of_row.load(pass, row_of_lane(first));
  };
  load(at.begin + at.group);
#pragma unroll
  for (int k = 0; k < K; ++k) packs[k].set_weights(weights[k]);
  const float factor = pass.weight * step.loss_scale * inverse_count<float>(step.global_samples);

  int turn = 0;
  for (int64_t block_first = at.begin; block_first < at.end; turn ^= 1) {
    const int64_t first = block_first + at.group;
#pragma unroll
    for (int k = 0; k < K; ++k) packs[k].cut(in[k]);
    float products[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      products[r] = 0;
#pragma unroll
      for (int k = 0; k < K; ++k) products[r] += packs[k].product(in[k][r]);
    }
    float own = own_sum(products, at.lane);
    if (at.lanes > 32) own = shared.over_warps(at, turn, own);
    float gradient = 0;
    if (at.lane < R)
      gradient = of_row.finish(pass, step, factor, row_of_lane(first), own,
                               at.is_first_warp() && first + at.lane * at.groups < at.end);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float of_logit = __shfl_sync(0xffffffffu, gradient, r);
      if (first + r * at.groups >= at.end) continue;
#pragma unroll
      for (int k = 0; k < K; ++k) packs[k].add_row(first + r * at.groups, in[k][r], of_logit);
    }
    if constexpr (kOneTurn) break;
    block_first += at.groups * R;
    if (block_first >= at.end) break;
    find(block_first + at.group);
    load(block_first + at.group);
  }

  if (at.lane < R && at.is_first_warp()) {
    shared.losses[at.group][at.lane] = of_row.loss;
    shared.d_sums[at.group][at.lane] = of_row.d_sum;
  }
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int i = 0; i < 2 * V; ++i) shared.sums[k][i][at.thread] = packs[k].sums[i];
  __syncthreads();
  bool is_last = false;
  if (at.thread == 0) is_last = write_loss_of_block(pass, at, shared);
#pragma unroll
  for (int k = 0; k < K; ++k) write_sums<V>(pass, at, shared, k);
  if (at.thread >= 32 || !__shfl_sync(0xffffffffu, is_last, 0)) return;
  logit_fence();
  add_up_losses(pass, at.lane, step.global_samples);
}

}  // namespace hctr::ops
