// Kernels of the owner split: one thread per bag and owner; CUB's prefix sum computes the positions of the keys.
#include "core/device/launch.cuh"
#include "ops/embedding/owner_split.h"
#include "ops/embedding/prefix_sum.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

constexpr int kOwnerSplitThreads = 256;

/// Counts the keys of each owner and bag in `lengths`. Sets the last element, lengths[ranks * bags], to 0.
__global__ void count_owned_kernel(const int64_t* keys, const int32_t* offsets, OwnerSplit split) {
  const int64_t all = split.ranks * split.bags;
  for (int64_t i = thread_index(); i <= all; i += thread_count()) {
    int32_t count = 0;
    if (i < all) {
      const int64_t owner = i / split.bags, bag = i % split.bags;
      for (int32_t p = offsets[bag]; p < offsets[bag + 1]; ++p) count += rank_of_key(keys[p], split.ranks) == owner;
    }
    split.lengths[i] = count;
  }
}

__global__ void send_owned_kernel(const int64_t* keys, const int32_t* offsets, OwnerSplit split) {
  for (int64_t i = thread_index(); i < split.ranks * split.bags; i += thread_count()) {
    const int64_t owner = i / split.bags, bag = i % split.bags;
    int32_t at = split.begin[i];
    for (int32_t p = offsets[bag]; p < offsets[bag + 1]; ++p)
      if (rank_of_key(keys[p], split.ranks) == owner) {
        split.sent[at] = keys[p];
        split.places[p] = ++at;
      }
  }
}

__global__ void find_sent_kernel(const int32_t* places, const int32_t* rows, int64_t count, int32_t* found) {
  for (int64_t p = thread_index(); p < count; p += thread_count()) found[p] = rows[places[p] - 1] != 0 ? places[p] : 0;
}

}  // namespace

namespace cuda {

size_t split_scratch_bytes(int64_t lengths) { return prefix_sums_bytes(lengths); }

void split_by_owner(Context& ctx, const int64_t* keys, const int32_t* offsets, OwnerSplit split) {
  const int64_t all = split.ranks * split.bags;
  launch(ctx, "count_owned", grid_for(all + 1, kOwnerSplitThreads), count_owned_kernel, keys, offsets, split);
  prefix_sums(ctx, split.lengths, split.begin, all + 1, split.scratch);
  if (all > 0) launch(ctx, "send_owned", grid_for(all, kOwnerSplitThreads), send_owned_kernel, keys, offsets, split);
}

void add_lengths(Context& ctx, const int32_t* lengths, int64_t count, int32_t* offsets, std::byte* scratch) {
  prefix_sums(ctx, lengths, offsets, count, scratch);
}

void find_sent(Context& ctx, const int32_t* places, const int32_t* rows, int64_t count, int32_t* found) {
  launch(ctx, "find_sent", grid_for(count, kOwnerSplitThreads), find_sent_kernel, places, rows, count, found);
}

}  // namespace cuda
}  // namespace hctr::ops
