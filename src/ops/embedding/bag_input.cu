// The kernel that copies the keys and offsets of bags, in a grid-stride loop.
#include "ops/embedding/bag_input.h"

#include <algorithm>

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kInputThreads = 256;
constexpr int kKeysAtOnce = 4;  // keys that a thread loads concurrently

__device__ int64_t offset_at(const FeatureBags& from, int64_t b) {
  if (!from.offsets) return b;
  return from.wide ? static_cast<const int64_t*>(from.offsets)[b] : static_cast<const int32_t*>(from.offsets)[b];
}

__device__ int64_t key_at(const FeatureBags& from, int64_t i) {
  switch (from.type) {
    case KeyType::i32:
      return static_cast<const int32_t*>(from.keys)[i];
    case KeyType::u32:
      return static_cast<const uint32_t*>(from.keys)[i];
    default:
      return static_cast<const int64_t*>(from.keys)[i];
  }
}

__device__ void place(BlockRange range, FeatureBags from, int32_t* offsets, int64_t* keys, float* weights) {
  const int64_t begin = offset_at(from, 0);
  const auto placed = [&](int64_t b) { return min(max(offset_at(from, b) - begin, int64_t{0}), from.most); };
  const int32_t first = offsets[0];
  for (int64_t b = 1 + range.thread_index(); b <= from.bags; b += range.thread_count())
    offsets[b] = first + static_cast<int32_t>(placed(b));
  const int64_t count = placed(from.bags), threads = range.thread_count();
  for (int64_t begin = range.thread_index(); begin < count; begin += kKeysAtOnce * threads) {
    int64_t key[kKeysAtOnce];
#pragma unroll
    for (int k = 0; k < kKeysAtOnce; ++k)
      if (const int64_t i = begin + k * threads; i < count) key[k] = key_at(from, i);
#pragma unroll
    for (int k = 0; k < kKeysAtOnce; ++k)
      if (const int64_t i = begin + k * threads; i < count) keys[first + i] = key[k];
  }
  if (weights)
    for (int64_t i = range.thread_index(); i < count; i += threads)
      weights[first + i] = from.weights ? from.weights[i] : 1.0f;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

void place_bags(Context& ctx, FeatureBags from, int32_t* offsets, int64_t* keys, float* weights) {
  launch_lockstep<place, kInputThreads>(
      ctx, "place_bags",
      grid_for(std::max(from.bags, (from.most + kKeysAtOnce - 1) / kKeysAtOnce), kInputThreads).blocks, from, offsets,
      keys, weights);
}

}  // namespace cuda
}  // namespace hctr::ops
