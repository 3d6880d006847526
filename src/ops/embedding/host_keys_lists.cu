// The list kernels of host_keys.h: one thread per bag computes lengths, CUB computes prefix sums, then the lists are
// filled.
#include <algorithm>
#include <limits>

#include "core/device/launch.cuh"
#include "ops/embedding/host_keys.h"
#include "ops/embedding/host_list_rules.h"
#include "ops/embedding/prefix_sum.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

/// Writes the bag lengths of all ranks, and initializes empty lists.
__global__ void joined_lengths_kernel(HostMessages all, HostKeys read, HostJoin join, int32_t* lengths,
                                      OwnerLists lists) {
  const int64_t bags = join.columns * join.ranks * join.samples;
  for (int64_t i = thread_index(); i <= bags; i += thread_count()) {
    const int64_t bag = i < bags ? JoinedBag(all, join, i).bag : 0;
    lengths[i] = i < bags ? read.offsets[bag + 1] - read.offsets[bag] : 0;
  }
  for (int64_t i = thread_index(); i <= lists.vectors; i += thread_count()) {
    lists.offsets[i] = 0;
    if (i < lists.vectors) lists.first[i] = std::numeric_limits<int32_t>::max();
  }
}

__global__ void join_bags_kernel(HostMessages all, HostKeys read, const std::byte* words, HostJoin join,
                                 const int32_t* offsets, int64_t* keys, OwnerLists lists) {
  const int64_t bags = join.columns * join.ranks * join.samples;
  for (int64_t i = thread_index(); i < bags; i += thread_count())
    join_bag(all, read, words, join, offsets, keys, lists, i, [](int32_t& at, int32_t value) {
      if (*static_cast<volatile int32_t*>(&at) > value) atomicMin(&at, value);
    });
}

__global__ void list_joined_kernel(HostMessages all, HostKeys read, HostJoin join, const int32_t* offsets,
                                   OwnerLists lists) {
  const int64_t bags = join.columns * join.ranks * join.samples;
  for (int64_t i = thread_index(); i < bags; i += thread_count()) list_joined_bag(all, read, join, offsets, lists, i);
}

__global__ void list_bags_kernel(HostMessages all, HostKeys keys, HostBags bags, BagLists lists) {
  for (int64_t i = thread_index(); i <= bags.count; i += thread_count())
    if (i < bags.count)
      list_bag(all, keys, bags, lists, i);
    else
      lists.offsets[i] = 0;
}

__global__ void list_vectors_kernel(HostMessages all, HostKeys keys, HostBags bags, BagLists lists) {
  for (int64_t i = thread_index(); i < bags.count; i += thread_count()) list_vectors(all, keys, bags, lists, i);
}

}  // namespace

void cuda::join_host_keys(Context& ctx, HostMessages all, HostKeys read, Tensor words, HostJoin join, Tensor offsets,
                          Tensor keys, OwnerLists lists, std::byte* scratch) {
  const int64_t bags = join.columns * join.ranks * join.samples;
  auto* const sums = offsets.data<int32_t>();
  launch(ctx, "joined_lengths", grid_for(std::max(bags, lists.vectors) + 1), joined_lengths_kernel, all, read, join,
         sums, lists);
  prefix_sums(ctx, sums, sums, bags + 1, scratch);
  launch(ctx, "join_bags", grid_for(bags), join_bags_kernel, all, read, words.bytes(), join, sums, keys.data<int64_t>(),
         lists);
  prefix_sums(ctx, lists.offsets, lists.offsets, lists.vectors + 1, scratch);
  launch(ctx, "list_joined", grid_for(bags), list_joined_kernel, all, read, join, sums, lists);
}

void cuda::list_host_vectors(Context& ctx, HostMessages all, HostKeys planned, HostBags bags, BagLists lists,
                             std::byte* scratch) {
  launch(ctx, "list_bags", grid_for(bags.count + 1), list_bags_kernel, all, planned, bags, lists);
  prefix_sums(ctx, lists.offsets, lists.offsets, bags.count + 1, scratch);
  launch(ctx, "list_vectors", grid_for(bags.count), list_vectors_kernel, all, planned, bags, lists);
}

}  // namespace hctr::ops
