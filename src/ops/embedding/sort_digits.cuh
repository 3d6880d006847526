// Helpers of the row sorts and the key split: 8-bit digits, and sums over warps and blocks.
#pragma once

#include <cstdint>

namespace hctr::ops {
namespace {

constexpr int kSortDigitBits = 8, kSortDigits = 1 << kSortDigitBits;
constexpr uint32_t kWholeWarp = 0xffffffffu;

/// Returns a mask of the warp's lanes with the same digit.
__device__ inline uint32_t lanes_with(uint32_t digit) {
  uint32_t lanes = kWholeWarp;
#pragma unroll
  for (int bit = 0; bit < kSortDigitBits; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const uint32_t votes = __ballot_sync(kWholeWarp, set);
    lanes &= set ? votes : ~votes;
  }
  return lanes;
}

/// Inclusive prefix sum of x over the warp's lanes.
__device__ inline uint32_t sum_to_lane(uint32_t x) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(kWholeWarp, x, static_cast<unsigned>(distance));
    if (lane >= distance) x += other;
  }
  return x;
}

/// `before`: the sum of x over the earlier threads of the block; `all`: over all threads.
struct BlockSums {
  uint32_t before, all;
};
/// Sums x over a block of kWarps warps. All threads of the block must call the function. `of_warp` may be reused after
/// a barrier.
template <int kWarps>
__device__ inline BlockSums sum_threads(uint32_t (&of_warp)[kWarps], uint32_t x) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const uint32_t to_lane = sum_to_lane(x);
  if (lane == 31) of_warp[warp] = to_lane;
  __syncthreads();
  BlockSums sums{to_lane - x, 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) sums.before += of_warp[w];
    sums.all += of_warp[w];
  }
  return sums;
}

}  // namespace
}  // namespace hctr::ops
