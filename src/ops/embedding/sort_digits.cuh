// What the sorts of row numbers share: digits of eight bits, counted by warps.
#pragma once

#include <cstdint>

namespace hctr::ops {
namespace {

constexpr int kSortDigitBits = 8, kSortDigits = 1 << kSortDigitBits;
constexpr uint32_t kWholeWarp = 0xffffffffu;

/// The lanes of the warp with this digit.
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

/// The sum of `x` over this lane and those before it.
__device__ inline uint32_t sum_to_lane(uint32_t x) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(kWholeWarp, x, static_cast<unsigned>(distance));
    if (lane >= distance) x += other;
  }
  return x;
}

}  // namespace
}  // namespace hctr::ops
