// Kernels that convert bags: one element per thread, in a grid-stride loop.
#include "ops/embedding/bag_input.h"

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kInputThreads = 256;

__device__ int64_t offset_at(const FeatureBags& from, int64_t b) {
  if (!from.offsets) return b;
  return from.wide ? static_cast<const int64_t*>(from.offsets)[b] : static_cast<const int32_t*>(from.offsets)[b];
}

__device__ void place_some_offsets(BlockRange range, FeatureBags from, int32_t* to) {
  const int64_t begin = offset_at(from, 0);
  const int32_t first = to[0];
  for (int64_t b = 1 + range.thread_index(); b <= from.bags; b += range.thread_count())
    to[b] = first + static_cast<int32_t>(min(max(offset_at(from, b) - begin, int64_t{0}), from.most));
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

__device__ void place_some_keys(BlockRange range, FeatureBags from, const int32_t* placed, int64_t* keys,
                                float* weights) {
  const int64_t first = placed[0], count = min(static_cast<int64_t>(placed[from.bags]) - first, from.most);
  for (int64_t i = range.thread_index(); i < count; i += range.thread_count()) {
    keys[first + i] = key_at(from, i);
    if (weights) weights[first + i] = from.weights ? from.weights[i] : 1.0f;
  }
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

void place_offsets(Context& ctx, FeatureBags from, int32_t* to) {
  launch_lockstep<place_some_offsets, kInputThreads>(ctx, "place_offsets", grid_for(from.bags, kInputThreads).blocks,
                                                     from, to);
}

void place_keys(Context& ctx, FeatureBags from, const int32_t* placed, int64_t* keys, float* weights) {
  launch_lockstep<place_some_keys, kInputThreads>(ctx, "place_keys", grid_for(from.most, kInputThreads).blocks, from,
                                                  placed, keys, weights);
}

}  // namespace cuda
}  // namespace hctr::ops
