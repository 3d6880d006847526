// Groups the keys of a batch by row: radix sort and selection by CUB, or for few keys one block (small_group.cuh).
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "device/launch.cuh"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/small_group.cuh"

namespace hctr::ops {
namespace {

/// Whether a run starts at a position of the sorted rows. Row 0 has none.
struct StartsRun {
  const int32_t* rows;
  __device__ bool operator()(int32_t i) const { return rows[i] != 0 && (i == 0 || rows[i - 1] != rows[i]); }
};

/// Writes the gradient of each key, and 0 (never read) past the last key. A thread writes the keys of its
/// bag; a warp writes those of long bags, one bag after the other.
__device__ void find_bags(BlockRange range, KeyBatch batch, int32_t* bags, GroupCounts* counts) {
  constexpr int32_t kShort = 4;
  constexpr uint32_t kAll = 0xffffffffu;
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  const int64_t thread = range.thread_index(), threads = range.thread_count(), count = batch.bags();
  for (int64_t bag = thread; bag - lane < count; bag += threads) {
    const int32_t begin = bag < count ? batch.offsets[bag] : 0, end = bag < count ? batch.offsets[bag + 1] : 0;
    const bool is_long = end - begin > kShort;
    for (int32_t p = begin; p < end && !is_long; ++p) bags[p] = static_cast<int32_t>(batch.gradient_of(bag, p));
    for (uint32_t left = __ballot_sync(kAll, is_long); left != 0; left &= left - 1) {
      const int owner = __ffs(static_cast<int>(left)) - 1;
      const int32_t last = __shfl_sync(kAll, end, owner);
      for (int32_t p = __shfl_sync(kAll, begin, owner) + lane; p < last; p += 32)
        bags[p] = static_cast<int32_t>(batch.gradient_of(bag - lane + owner, p));
    }
  }
  for (int64_t p = batch.size() + thread; p < batch.key_capacity; p += threads) bags[p] = 0;
  if (thread == 0) *counts = {};
}

/// The order of long runs in the lists depends on timing; the pieces of a run do not.
__device__ void find_long_runs(BlockRange range, RowGroups groups, int64_t key_capacity) {
  const int64_t runs = groups.counts->runs;
  for (int64_t run = range.thread_index(); run < runs; run += range.thread_count()) {
    const int64_t length = groups.run_end(run, key_capacity) - groups.run_begin[run];
    if (length <= kPiece) continue;
    const auto pieces = static_cast<int32_t>((length + kPiece - 1) / kPiece);
    const int32_t first = atomicAdd(&groups.counts->pieces, pieces);
    groups.long_runs[atomicAdd(&groups.counts->long_runs, 1)] = {static_cast<int32_t>(run), first, pieces};
  }
}

/// One block per long run.
__device__ void cut_long_runs(BlockRange range, RowGroups groups, int64_t key_capacity) {
  for (int64_t i = range.block; i < groups.counts->long_runs; i += range.blocks) {
    const LongRun run = groups.long_runs[i];
    const int64_t begin = groups.run_begin[run.run], end = groups.run_end(run.run, key_capacity);
    for (int64_t k = threadIdx.x; k < run.pieces; k += blockDim.x)
      groups.pieces[run.first_piece + k] = {static_cast<int32_t>(begin + k * kPiece),
                                            static_cast<int32_t>(min(begin + (k + 1) * kPiece, end))};
  }
}

/// Scratch: the unsorted bags, then the temporary storage of CUB.
struct Scratch {
  int32_t* bags;
  void* temporary;
  size_t temporary_bytes;

  static size_t bag_bytes(int64_t key_capacity) {
    return (static_cast<size_t>(key_capacity) * sizeof(int32_t) + 255) / 256 * 256;
  }
};

void sort_by_row(Scratch scratch, size_t& bytes, const int32_t* rows, const RowGroups& groups, int64_t count,
                 int row_bits, cudaStream_t stream) {
  // Row numbers are not negative, so they are sorted as unsigned numbers of `row_bits` bits.
  HCTR_CHECK(cub::DeviceRadixSort::SortPairs(scratch.temporary, bytes, reinterpret_cast<const uint32_t*>(rows),
                                             reinterpret_cast<uint32_t*>(groups.rows), scratch.bags, groups.bags,
                                             static_cast<int>(count), 0, row_bits, stream));
}

void select_runs(Scratch scratch, size_t& bytes, const RowGroups& groups, int64_t count, cudaStream_t stream) {
  HCTR_CHECK(cub::DeviceSelect::If(scratch.temporary, bytes, thrust::counting_iterator<int32_t>(0), groups.run_begin,
                                   &groups.counts->runs, static_cast<int>(count), StartsRun{groups.rows}, stream));
}

size_t cub_scratch_bytes(int64_t key_capacity) {
  size_t for_sort = 0, for_select = 0;
  const RowGroups nothing;
  GroupCounts counts;  // only its address is used
  RowGroups addressed = nothing;
  addressed.counts = &counts;
  sort_by_row({}, for_sort, nullptr, addressed, key_capacity, 32, nullptr);
  select_runs({}, for_select, addressed, key_capacity, nullptr);
  return std::max(for_sort, for_select);
}

}  // namespace

namespace cuda {

using hctr::cuda::enqueue;
using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;
constexpr int kBagThreads = 256;

size_t group_scratch_bytes(int64_t key_capacity) {
  return Scratch::bag_bytes(key_capacity) + cub_scratch_bytes(key_capacity);
}

void group_by_row(Context& ctx, KeyBatch batch, const int32_t* rows, int row_bits, RowGroups groups,
                  std::byte* memory) {
  const int64_t capacity = batch.key_capacity;
  const Scratch scratch{reinterpret_cast<int32_t*>(memory), memory + Scratch::bag_bytes(capacity),
                        cub_scratch_bytes(capacity)};
  launch_lockstep<find_bags, kBagThreads>(ctx, "find_bags",
                                          grid_for(std::max(batch.bags(), capacity), kBagThreads).blocks, batch,
                                          scratch.bags, groups.counts);
  if (capacity <= kMostSmallKeys && sizeof(SmallGroupMemory) <= hctr::cuda::most_shared_bytes())
    return launch_lockstep<group_small_batch, kGroupThreads, 1, sizeof(SmallGroupMemory)>(
        ctx, "group_small_batch", 1, rows, scratch.bags, groups, static_cast<int>(capacity));
  enqueue(ctx, "sort_by_row", [=](Context& now) {
    const cudaStream_t stream = hctr::cuda::stream_of(now.stream());
    size_t bytes = scratch.temporary_bytes;
    sort_by_row(scratch, bytes, rows, groups, capacity, row_bits, stream);
    bytes = scratch.temporary_bytes;
    select_runs(scratch, bytes, groups, capacity, stream);
  });
  launch_lockstep<find_long_runs, kBagThreads>(ctx, "find_long_runs", grid_for(capacity, kBagThreads).blocks, groups,
                                               capacity);
  launch_lockstep<cut_long_runs, 128>(ctx, "cut_long_runs",
                                      std::min(RowGroups::most_long_runs(capacity), hctr::cuda::blocks_of_device(1)),
                                      groups, capacity);
}

}  // namespace cuda
}  // namespace hctr::ops
