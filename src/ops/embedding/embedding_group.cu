// Groups the keys of a batch by row. Small batches use one block (small_group.cuh), medium batches a tiled sort
// (tiled_group.cuh), large batches CUB's radix sort. After the tiled sort or CUB's sort, kernels list the runs of equal
// rows tile by tile; for very large batches, CUB's selection lists the runs.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/small_group.cuh"
#include "ops/embedding/tiled_group.cuh"

namespace hctr::ops {
namespace {

/// Whether a run of equal rows starts at position i of the sorted rows. Row 0 has no run.
struct StartsRun {
  const int32_t* rows;
  __device__ bool operator()(int32_t i) const { return rows[i] != 0 && (i == 0 || rows[i - 1] != rows[i]); }
};

__device__ void find_bags(BlockRange range, KeyBatch batch, int32_t* bags, GroupCounts* counts) {
  write_bags(range, batch, bags);
  if (range.thread_index() == 0) *counts = {};
}

/// Lists the long runs. The order of runs in the list depends on timing; the pieces of each run do not.
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

/// Writes the pieces of the long runs, one block per run.
__device__ void cut_long_runs(BlockRange range, RowGroups groups, int64_t key_capacity) {
  for (int64_t i = range.block; i < groups.counts->long_runs; i += range.blocks) {
    const LongRun run = groups.long_runs[i];
    const int64_t begin = groups.run_begin[run.run], end = groups.run_end(run.run, key_capacity);
    for (int64_t k = threadIdx.x; k < run.pieces; k += blockDim.x)
      groups.pieces[run.first_piece + k] = {static_cast<int32_t>(begin + k * kPiece),
                                            static_cast<int32_t>(min(begin + (k + 1) * kPiece, end))};
  }
}

/// Scratch of the CUB sort: the unsorted bags, then CUB's temporary storage.
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
  // Row numbers are not negative, so they can be sorted as unsigned integers of `row_bits` bits.
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
constexpr int64_t kMostRunTiles = 2048;  // a limit, because a block that lists runs reads the run counts of all tiles

namespace {

bool fits_one_block(int64_t capacity) {
  return capacity <= kMostSmallKeys && sizeof(SmallGroupMemory) <= hctr::cuda::most_shared_bytes();
}

int64_t tiles_of(int64_t capacity) { return (capacity + kSortTile - 1) / kSortTile; }

void list_runs_in_tiles(Context& ctx, const RowGroups& groups, TileRuns* runs, int64_t keys) {
  const int64_t tiles = tiles_of(keys);
  launch_lockstep<count_tile_runs, kSortThreads>(ctx, "count_tile_runs", tiles, groups.rows, runs, keys);
  launch_lockstep<list_tile_runs, kSortThreads>(ctx, "list_tile_runs", tiles, groups, runs, keys, tiles);
}

/// Scratch of the tiled sort: the unsorted bags, rows and bags between two passes, digit counts, and runs per tile.
struct TiledScratch {
  int32_t *bags = nullptr, *rows_between = nullptr, *bags_between = nullptr;
  uint32_t* counts = nullptr;
  TileRuns* runs = nullptr;
  size_t bytes = 0;

  TiledScratch(std::byte* memory, int64_t capacity) {
    const auto take = [&]<class T>(T*& array, int64_t count) {
      array = reinterpret_cast<T*>(memory + bytes);
      bytes += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    };
    take(bags, capacity);
    take(rows_between, capacity);
    take(bags_between, capacity);
    take(counts, kMostPasses * tiles_of(capacity) * kSortDigits);
    take(runs, tiles_of(capacity));
  }
};

template <int kEach>
void sort_in_tiles(Context& ctx, const KeyBatch& batch, const int32_t* rows, int row_bits, const RowGroups& groups,
                   const TiledScratch& scratch) {
  constexpr int64_t kTile = kSortThreads * kEach;
  const int64_t keys = batch.key_capacity, tiles = (keys + kTile - 1) / kTile;
  const int passes = std::max(1, (row_bits + kSortDigitBits - 1) / kSortDigitBits);
  launch_lockstep<begin_sort<kEach>, kSortThreads>(ctx, "begin_sort",
                                                   std::max(tiles, grid_for(batch.bags(), kSortThreads).blocks), batch,
                                                   rows, scratch.bags, groups.counts, scratch.counts, tiles, passes);
  const SortedKeys between{scratch.rows_between, scratch.bags_between}, sorted{groups.rows, groups.bags};
  ConstKeys from{rows, scratch.bags};
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t* const counts = scratch.counts + pass * tiles * kSortDigits;
    const SortedKeys to = (passes - pass) % 2 == 1 ? sorted : between;
    launch_lockstep<sort_tile<kEach>, kSortThreads, kEach == kSortEachOfMost ? 3 : 0>(
        ctx, "sort_tile", tiles, from, to, counts, pass + 1 < passes ? counts + tiles * kSortDigits : nullptr, keys,
        tiles, pass * kSortDigitBits);
    from = {to.rows, to.bags};
  }
}

void group_in_tiles(Context& ctx, const KeyBatch& batch, const int32_t* rows, int row_bits, const RowGroups& groups,
                    std::byte* memory) {
  const int64_t keys = batch.key_capacity;
  // The scratch is sized for small tiles. Larger tiles need less, because they have fewer counts.
  const TiledScratch scratch(memory, keys);
  if (keys <= kKeysOfSmallTiles)
    sort_in_tiles<kSortEach>(ctx, batch, rows, row_bits, groups, scratch);
  else if (keys <= kKeysOfMiddleTiles)
    sort_in_tiles<kSortEachOfMany>(ctx, batch, rows, row_bits, groups, scratch);
  else
    sort_in_tiles<kSortEachOfMost>(ctx, batch, rows, row_bits, groups, scratch);
  list_runs_in_tiles(ctx, groups, scratch.runs, keys);
}

}  // namespace

/// Scratch that suffices for every sort that group_by_row() may use for a batch of up to `key_capacity` keys. A smaller
/// batch may use another sort than a batch of `key_capacity` keys.
size_t group_scratch_bytes(int64_t key_capacity) {
  const size_t in_tiles = TiledScratch(nullptr, std::min(key_capacity, kMostMergedKeys)).bytes;
  if (key_capacity <= kMostTiledKeys) return in_tiles;
  return std::max(in_tiles, Scratch::bag_bytes(key_capacity) + cub_scratch_bytes(key_capacity));
}

void group_by_row(Context& ctx, KeyBatch batch, const int32_t* rows, int row_bits, RowGroups groups,
                  std::byte* memory) {
  const int64_t capacity = batch.key_capacity;
  const bool in_one_block = fits_one_block(capacity);
  const int64_t most_in_tiles = ctx.queue() && ctx.queue()->several() ? kMostMergedKeys : kMostTiledKeys;
  if (!in_one_block && capacity <= most_in_tiles) return group_in_tiles(ctx, batch, rows, row_bits, groups, memory);
  const Scratch scratch{reinterpret_cast<int32_t*>(memory), memory + Scratch::bag_bytes(capacity),
                        in_one_block ? 0 : cub_scratch_bytes(capacity)};
  launch_lockstep<find_bags, kBagThreads>(ctx, "find_bags",
                                          grid_for(std::max(batch.bags(), capacity), kBagThreads).blocks, batch,
                                          scratch.bags, groups.counts);
  if (in_one_block)
    return launch_lockstep<group_small_batch, kGroupThreads, 1, sizeof(SmallGroupMemory)>(
        ctx, "group_small_batch", 1, rows, scratch.bags, groups, static_cast<int>(capacity));
  const bool runs_in_tiles = tiles_of(capacity) <= kMostRunTiles;
  enqueue(ctx, "sort_by_row", [=](Context& now) {
    const cudaStream_t stream = hctr::cuda::stream_of(now.stream());
    size_t bytes = scratch.temporary_bytes;
    sort_by_row(scratch, bytes, rows, groups, capacity, row_bits, stream);
    bytes = scratch.temporary_bytes;
    if (!runs_in_tiles) select_runs(scratch, bytes, groups, capacity, stream);
  });
  // scratch.bags is free now, because the sort has read the unsorted bags.
  if (runs_in_tiles) return list_runs_in_tiles(ctx, groups, reinterpret_cast<TileRuns*>(scratch.bags), capacity);
  launch_lockstep<find_long_runs, kBagThreads>(ctx, "find_long_runs", grid_for(capacity, kBagThreads).blocks, groups,
                                               capacity);
  launch_lockstep<cut_long_runs, 128>(ctx, "cut_long_runs",
                                      std::min(RowGroups::most_long_runs(capacity), hctr::cuda::blocks_of_device(1)),
                                      groups, capacity);
}

}  // namespace cuda
}  // namespace hctr::ops
