// Groups the keys of a batch by row: a stable radix sort in tiles, whose blocks never wait for each other, then the
// lists of runs. Limits: kMostTiledKeys keys for one table, or kMostMergedKeys keys per table for several tables.
//
// A block sorts a tile of adjacent keys by one digit. The destinations of keys follow from the digit counts: the number
// of keys per digit in every tile. A separate kernel computes the digit counts of the first pass. Each pass knows the
// destination of its keys, and also computes the digit counts of the next pass. Passes therefore need neither look-back
// nor a separate sum over tiles. This sort has fewer and shorter kernels than CUB's. If several tables are sorted, each
// kernel is launched once for all of them (lockstep launches).
#pragma once

#include <cstdint>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/sort_digits.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;

constexpr int kSortThreads = 256, kSortWarps = kSortThreads / 32;
// kSortEach: keys per thread; kSortTile: keys per block
constexpr int kSortEach = 4, kSortTile = kSortThreads * kSortEach;
// Keys per thread in larger sorts: kSortEachOfMany for more than kKeysOfSmallTiles keys, kSortEachOfMost for more than
// kKeysOfMiddleTiles keys. A block reads the counts of all tiles, so with tiles of a fixed size the total of these
// reads would grow with the square of the number of keys. In a larger tile a digit also has more keys, which are
// written as longer segments.
constexpr int kSortEachOfMany = 8, kSortEachOfMost = 16;
constexpr int64_t kKeysOfSmallTiles = 48 * kSortTile, kKeysOfMiddleTiles = 128 * kSortTile;
static_assert(kSortThreads == kSortDigits, "each thread handles one digit");
constexpr int kMostPasses = 32 / kSortDigitBits;
constexpr int64_t kMostTiledKeys = 128 * kSortTile;  // limited, because each block reads the counts of all tiles
// For several tables the limit is higher: CUB would sort the tables one after the other, with several launches each.
constexpr int64_t kMostMergedKeys = 2 * kMostTiledKeys;

/// The number of runs that start in a tile, and the position of the first of these runs.
struct TileRuns {
  int32_t count, first;
};

/// Arrays of keys: the row and the bag of each key.
struct SortedKeys {
  int32_t* rows;
  int32_t* bags;
};
struct ConstKeys {
  const int32_t* rows;
  const int32_t* bags;
};

/// Writes the gradient number of each key to `bags`, and 0 (never read) past the last key. A warp processes 32 bags at
/// a time: each lane loads the offset of one bag. Then the lanes process adjacent keys; each lane searches its key's
/// bag among the 32 bags.
__device__ inline void write_bags(BlockRange range, const KeyBatch& batch, int32_t* bags) {
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  const int64_t thread = range.thread_index(), threads = range.thread_count(), count = batch.bags();
  for (int64_t first = thread - lane; first < count; first += threads) {
    const int32_t begin = batch.offsets[min(first + lane, count)], end = batch.offsets[min(first + 32, count)];
    for (int32_t p = __shfl_sync(kWholeWarp, begin, 0) + lane; p - lane < end; p += 32) {
      int of = 0;  // the last bag that begins at p or before it
#pragma unroll
      for (int step = 16; step > 0; step /= 2)
        if (__shfl_sync(kWholeWarp, begin, of + step) <= p) of += step;
      if (p < end) bags[p] = static_cast<int32_t>(batch.gradient_of(first + of, p));
    }
  }
  for (int64_t p = batch.size() + thread; p < batch.key_capacity; p += threads) bags[p] = 0;
}

/// The first kernel of a sort: writes the bags of keys, counts the first digit per tile (one block per tile), and
/// zeroes the counts of the later passes. tile_counts: [passes][tiles][kSortDigits].
template <int kEach>
__device__ void begin_sort(BlockRange range, KeyBatch batch, const int32_t* rows, int32_t* bags, GroupCounts* counts,
                           uint32_t* tile_counts, int tiles, int passes) {
  constexpr int kTile = kSortThreads * kEach;
  __shared__ uint32_t of_digit[kSortDigits];
  const auto thread = static_cast<int>(threadIdx.x);
  if (range.block < tiles) {
    const auto keys = static_cast<int>(batch.key_capacity);
    const int tile = static_cast<int>(range.block), first = tile * kTile + thread;
    uint32_t row[kEach];
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int p = first + j * kSortThreads;
      row[j] = p < keys ? static_cast<uint32_t>(rows[p]) : 0;
    }
    of_digit[thread] = 0;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const uint32_t digit = row[j] & (kSortDigits - 1);
      const bool here = first + j * kSortThreads < keys;
      // Frequent keys occur in many lanes, so one lane adds the count of all lanes with the same digit.
      const uint32_t same = lanes_with(digit) & __ballot_sync(kWholeWarp, here);
      if (here && __ffs(static_cast<int>(same)) - 1 == thread % 32)
        atomicAdd(&of_digit[digit], static_cast<uint32_t>(__popc(same)));
    }
    __syncthreads();
    tile_counts[tile * kSortDigits + thread] = of_digit[thread];
    for (int pass = 1; pass < passes; ++pass) tile_counts[(pass * tiles + tile) * kSortDigits + thread] = 0;
  }
  write_bags(range, batch, bags);
  if (range.block == 0 && thread == 0) *counts = {};
}

/// Sorts the keys by the digit at bit `shift`, with one block per tile. `counts` [tiles][kSortDigits]: counts of this
/// digit. `next`: receives the counts of the next digit; null in the last pass.
template <int kEach>
__device__ void sort_tile(BlockRange range, ConstKeys from, SortedKeys to, const uint32_t* counts, uint32_t* next,
                          int keys, int tiles, int shift) {
  constexpr int kTile = kSortThreads * kEach;
  __shared__ int32_t tile_rows[kTile], tile_bags[kTile];
  __shared__ uint32_t before[kSortWarps][kSortDigits];  // per warp and digit: number of keys in earlier warps
  __shared__ uint32_t begin_here[kSortDigits], begin_there[kSortDigits], of_warp[2][kSortWarps];
  const int tile = static_cast<int>(range.block);
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32, lane = thread % 32;
  const int first = tile * kTile + warp * 32 * kEach + lane, here = min(kTile, keys - tile * kTile);

  uint32_t row[kEach], bag[kEach], place[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int p = first + 32 * j;
    // Padding has the largest row number, so it stays at the end.
    row[j] = p < keys ? static_cast<uint32_t>(from.rows[p]) : 0xffffffffu;
    bag[j] = p < keys ? static_cast<uint32_t>(from.bags[p]) : 0;
  }
  uint32_t in_tiles_before = 0, in_all = 0;
#pragma unroll 8
  for (int t = 0; t < tiles; ++t) {
    const uint32_t count = counts[t * kSortDigits + thread];
    in_all += count;
    if (t < tile) in_tiles_before += count;
  }
#pragma unroll
  for (int w = 0; w < kSortWarps; ++w) before[w][thread] = 0;
  __syncthreads();

  uint32_t* const mine = before[warp];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const uint32_t digit = row[j] >> shift & (kSortDigits - 1);
    const uint32_t same = lanes_with(digit), earlier = static_cast<uint32_t>(__popc(same & ((1u << lane) - 1)));
    uint32_t count = 0;
    if (earlier == 0) {
      count = mine[digit];
      mine[digit] = count + static_cast<uint32_t>(__popc(same));
    }
    place[j] = __shfl_sync(kWholeWarp, count, __ffs(static_cast<int>(same)) - 1) + earlier;
    __syncwarp();  // the next iteration reads these counts
  }
  __syncthreads();

  uint32_t in_tile = 0;
#pragma unroll
  for (int w = 0; w < kSortWarps; ++w) {
    const uint32_t count = before[w][thread];
    before[w][thread] = in_tile;
    in_tile += count;
  }
  begin_here[thread] = sum_threads(of_warp[0], in_tile).before;
  begin_there[thread] = sum_threads(of_warp[1], in_all).before + in_tiles_before - begin_here[thread];
  __syncthreads();

#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const uint32_t digit = row[j] >> shift & (kSortDigits - 1);
    const uint32_t at = begin_here[digit] + mine[digit] + place[j];
    tile_rows[at] = static_cast<int32_t>(row[j]);
    tile_bags[at] = static_cast<int32_t>(bag[j]);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = thread + j * kSortThreads;
    if (i >= here) break;
    const auto sorted = static_cast<uint32_t>(tile_rows[i]);
    const uint32_t at = begin_there[sorted >> shift & (kSortDigits - 1)] + static_cast<uint32_t>(i);
    to.rows[at] = static_cast<int32_t>(sorted);
    to.bags[at] = tile_bags[i];
    if (next) atomicAdd(&next[at / kTile * kSortDigits + (sorted >> (shift + kSortDigitBits) & (kSortDigits - 1))], 1u);
  }
}

/// Counts the runs that start in each tile, with one block per tile. Row 0 has no run.
__device__ void count_tile_runs(BlockRange range, const int32_t* rows, TileRuns* tile_runs, int keys) {
  __shared__ int32_t first_run;
  const auto thread = static_cast<int>(threadIdx.x);
  const int begin = static_cast<int>(range.block) * kSortTile + thread;
  bool starts[kSortEach];
#pragma unroll
  for (int j = 0; j < kSortEach; ++j) {
    const int p = begin + j * kSortThreads;
    starts[j] = p < keys && rows[p] != 0 && (p == 0 || rows[p - 1] != rows[p]);
  }
  if (thread == 0) first_run = keys;
  __syncthreads();
  int32_t count = 0, first = keys;
#pragma unroll
  for (int j = kSortEach - 1; j >= 0; --j) {
    if (starts[j]) first = begin + j * kSortThreads;
    count += __syncthreads_count(starts[j]);
  }
  if (first < keys) atomicMin(&first_run, first);
  __syncthreads();
  if (thread == 0) tile_runs[range.block] = {count, first_run};
}

/// Lists the runs that start in a tile, the long runs among them, and the pieces of long runs, with one block per tile.
/// The order in which long runs are listed depends on timing, but the division of a run into pieces does not.
__device__ void list_tile_runs(BlockRange range, RowGroups groups, const TileRuns* tile_runs, int keys, int tiles) {
  constexpr int kMostLong = kSortTile / (kPiece + 1) + 1;
  __shared__ int32_t run_begin[kSortTile + 1];
  __shared__ uint32_t of_warp[2][kSortWarps];
  __shared__ LongRun long_runs[kMostLong];
  __shared__ int32_t long_count;
  const int tile = static_cast<int>(range.block);
  const auto thread = static_cast<int>(threadIdx.x);
  const int begin = tile * kSortTile + thread * kSortEach;  // a thread processes adjacent positions

  int32_t row[kSortEach + 1];  // row[0] is the row before this thread's positions
#pragma unroll
  for (int j = 0; j <= kSortEach; ++j) {
    const int p = begin + j - 1;
    row[j] = p >= 0 && p < keys ? groups.rows[p] : 0;
  }
  uint32_t starts = 0;
#pragma unroll
  for (int j = 0; j < kSortEach; ++j) starts |= row[j + 1] != 0 && row[j + 1] != row[j] ? 1u << j : 0u;
  uint32_t before = 0;
  int32_t end = keys;  // end of the tile's last run
  for (int t = thread; t < tiles; t += kSortThreads) {
    if (t < tile) before += static_cast<uint32_t>(tile_runs[t].count);
    if (t > tile) end = min(end, tile_runs[t].first);
  }
  if (thread == 0) {
    long_count = 0;
    run_begin[kSortTile] = keys;
  }
  const BlockSums sums = sum_threads(of_warp[0], static_cast<uint32_t>(__popc(starts)));
  const uint32_t first = sum_threads(of_warp[1], before).all;
  if (end < keys) atomicMin(&run_begin[kSortTile], end);
  uint32_t run = sums.before;
  for (uint32_t left = starts; left != 0; left &= left - 1) {
    const int p = begin + __ffs(static_cast<int>(left)) - 1;
    run_begin[run] = p;
    groups.run_begin[first + run] = p;
    ++run;
  }
  __syncthreads();

  const auto runs = static_cast<int>(sums.all);
  const auto end_of = [&](int r) { return run_begin[r + 1 < runs ? r + 1 : kSortTile]; };
  for (int r = thread; r < runs; r += kSortThreads) {
    const int length = end_of(r) - run_begin[r];
    if (length <= kPiece) continue;
    const auto pieces = static_cast<int32_t>((length + kPiece - 1) / kPiece);
    const LongRun one{static_cast<int32_t>(first) + r, atomicAdd(&groups.counts->pieces, pieces), pieces};
    groups.long_runs[atomicAdd(&groups.counts->long_runs, 1)] = one;
    long_runs[atomicAdd(&long_count, 1)] = {r, one.first_piece, pieces};
  }
  __syncthreads();
  for (int i = thread / 32; i < long_count; i += kSortWarps) {
    const LongRun one = long_runs[i];
    const int from = run_begin[one.run], to = end_of(one.run);
    constexpr auto kLength = static_cast<int>(kPiece);
    for (int k = thread % 32; k < one.pieces; k += 32)
      groups.pieces[one.first_piece + k] = {from + k * kLength, min(from + (k + 1) * kLength, to)};
  }
  if (tile == tiles - 1 && thread == 0) groups.counts->runs = static_cast<int32_t>(first) + runs;
}

}  // namespace
}  // namespace hctr::ops
