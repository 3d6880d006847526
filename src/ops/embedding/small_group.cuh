// Groups a small batch by row in one block: a radix sort in registers and shared memory, then the lists of runs and
// pieces. For so few keys, the launches of CUB take longer than the work.
//
// A warp owns adjacent keys and processes 32 at a time. In each 8-bit pass, a warp counts its keys per digit in key
// order; the counts of all warps then give, for each warp and digit, the position of the first key. The sort is
// therefore stable, with the same result as the large sort. The list of long runs is in row order.
#pragma once

#include <cstdint>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/sort_digits.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;

constexpr int kGroupThreads = 1024, kGroupWarps = kGroupThreads / 32;
constexpr int kKeysEach = 16;  // maximum keys per thread; a key needs two registers
constexpr int64_t kMostSmallKeys = kGroupThreads * kKeysEach;

/// The block's dynamic shared memory.
struct SmallGroupMemory {
  uint32_t rows[kMostSmallKeys];
  uint16_t positions[kMostSmallKeys];  // position of each key in the batch
  union {
    // in a pass, first the number of a warp's keys per digit, then the number of such keys in all earlier warps
    uint32_t before[kGroupWarps][kSortDigits];
    uint16_t run_begin[kMostSmallKeys];  // valid after the sort
  };
  uint32_t digit_begin[kSortDigits];
  uint32_t of_warp[kGroupWarps];
  uint32_t last_row;
};
static_assert(kMostSmallKeys <= 1 << 16, "positions have 16 bits");

/// `before`: the sum of `mine` over the earlier warps; `all`: over all warps. All threads of the block must call
/// sum_warps(), which reads only lane 0's `mine`.
struct WarpSums {
  uint32_t before, all;
};
__device__ inline WarpSums sum_warps(uint32_t* of_warp, uint32_t mine, int warp, int lane) {
  __syncthreads();  // all warps have read `of_warp` of the previous call
  if (lane == 0) of_warp[warp] = mine;
  __syncthreads();
  const uint32_t to_lane = sum_to_lane(of_warp[lane]);
  const uint32_t to_mine = __shfl_sync(kWholeWarp, to_lane, warp);
  return {to_mine - of_warp[warp], __shfl_sync(kWholeWarp, to_lane, 31)};
}
static_assert(kGroupWarps == 32, "one warp sums the counts of all warps, one warp per lane");

/// One radix sort pass over the threads' keys by eight bits of their rows. row[j] is the row of the thread's key first
/// + 32 j; the lower half of tag[j] is the key's position in the batch.
__device__ inline void sort_small_pass(SmallGroupMemory& memory, uint32_t (&row)[kKeysEach], uint32_t (&tag)[kKeysEach],
                                       int each, int first, int shift) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const uint32_t lanes_before = (1u << lane) - 1;
  uint32_t* const counts = &memory.before[0][0];
#pragma unroll
  for (int i = 0; i < kGroupWarps * kSortDigits / kGroupThreads; ++i) counts[thread + i * kGroupThreads] = 0;
  __syncthreads();

  uint32_t* const mine = memory.before[warp];
#pragma unroll
  for (int j = 0; j < kKeysEach; ++j) {
    if (j >= each) break;
    const uint32_t digit = row[j] >> shift & (kSortDigits - 1);
    const uint32_t same = lanes_with(digit), earlier = static_cast<uint32_t>(__popc(same & lanes_before));
    uint32_t count = 0;
    if (earlier == 0) {
      count = mine[digit];
      mine[digit] = count + static_cast<uint32_t>(__popc(same));
    }
    count = __shfl_sync(kWholeWarp, count, __ffs(static_cast<int>(same)) - 1);
    tag[j] = (tag[j] & 0xffffu) | (count + earlier) << 16;
    __syncwarp();  // the next iteration reads these counts
  }
  __syncthreads();

  uint32_t total = 0, to_here = 0;
  if (thread < kSortDigits) {  // the condition is uniform in a warp
#pragma unroll 8
    for (int w = 0; w < kGroupWarps; ++w) {
      const uint32_t count = memory.before[w][thread];
      memory.before[w][thread] = total;
      total += count;
    }
    to_here = sum_to_lane(total);
    if (lane == 31) memory.of_warp[warp] = to_here;
  }
  __syncthreads();
  if (thread < kSortDigits) {
    uint32_t begin = to_here - total;
    for (int w = 0; w < warp; ++w) begin += memory.of_warp[w];
    memory.digit_begin[thread] = begin;
  }
  __syncthreads();

#pragma unroll
  for (int j = 0; j < kKeysEach; ++j) {
    if (j >= each) break;
    const uint32_t digit = row[j] >> shift & (kSortDigits - 1);
    const uint32_t to = memory.digit_begin[digit] + mine[digit] + (tag[j] >> 16);
    memory.rows[to] = row[j];
    memory.positions[to] = static_cast<uint16_t>(tag[j]);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kKeysEach; ++j) {
    if (j >= each) break;
    row[j] = memory.rows[first + 32 * j];
    tag[j] = memory.positions[first + 32 * j];
  }
}

/// Lists the runs of the sorted rows. Returns the number of runs.
__device__ inline uint32_t list_small_runs(SmallGroupMemory& memory, const uint32_t (&row)[kKeysEach], int each,
                                           int first, int keys, const RowGroups& groups) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  uint32_t starts = 0, count = 0;  // bit j: a run starts at key j of this thread
#pragma unroll
  for (int j = 0; j < kKeysEach; ++j) {
    if (j >= each) break;
    const int p = first + 32 * j;
    const bool start = p < keys && row[j] != 0 && (p == 0 || memory.rows[p - 1] != row[j]);
    starts |= (start ? 1u : 0u) << j;
    count += static_cast<uint32_t>(__popc(__ballot_sync(kWholeWarp, start)));
  }
  const WarpSums sums = sum_warps(memory.of_warp, count, warp, lane);
  uint32_t run = sums.before;
  for (int j = 0; j < each; ++j) {
    const bool start = (starts >> j & 1) != 0;
    const uint32_t all = __ballot_sync(kWholeWarp, start);
    if (start) {
      const uint32_t to = run + static_cast<uint32_t>(__popc(all & ((1u << lane) - 1)));
      groups.run_begin[to] = first + 32 * j;
      memory.run_begin[to] = static_cast<uint16_t>(first + 32 * j);
    }
    run += static_cast<uint32_t>(__popc(all));
  }
  __syncthreads();
  return sums.all;
}

/// Lists the long runs and their pieces, both in run order, and writes the counts. A thread processes the runs first +
/// 32 j.
__device__ inline void list_small_pieces(SmallGroupMemory& memory, uint32_t runs, int each, int first, int keys,
                                         const RowGroups& groups) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const auto count = static_cast<int>(runs);
  const auto begin_of = [&](int run) { return run < count ? static_cast<int>(memory.run_begin[run]) : keys; };
  // Upper half: number of long runs; lower half: number of their pieces. Both numbers are below 2^16.
  const auto pieces_of = [&](int run) {
    if (run >= count) return 0u;
    const int length = begin_of(run + 1) - begin_of(run);
    return length > kPiece ? 1u << 16 | static_cast<uint32_t>((length + kPiece - 1) / kPiece) : 0u;
  };
  uint32_t own = 0;
  for (int j = 0; j < each; ++j) own += pieces_of(first + 32 * j);
  const uint32_t of_warp = __shfl_sync(kWholeWarp, sum_to_lane(own), 31);
  const WarpSums sums = sum_warps(memory.of_warp, of_warp, warp, lane);
  uint32_t before = sums.before;
  for (int j = 0; j < each; ++j) {
    const int run = first + 32 * j;
    const uint32_t mine = pieces_of(run), pieces = mine & 0xffffu;
    uint32_t is_long = __ballot_sync(kWholeWarp, pieces != 0);
    if (is_long == 0) continue;  // the condition is uniform in the warp
    const uint32_t to_here = sum_to_lane(mine), at = before + to_here - mine;
    if (pieces != 0)
      groups.long_runs[at >> 16] = {run, static_cast<int32_t>(at & 0xffffu), static_cast<int32_t>(pieces)};
    const int begin = begin_of(run), end = begin_of(run + 1);
    for (; is_long != 0; is_long &= is_long - 1) {
      const int owner = __ffs(static_cast<int>(is_long)) - 1;
      const int from = __shfl_sync(kWholeWarp, begin, owner), to = __shfl_sync(kWholeWarp, end, owner);
      const uint32_t first_piece = __shfl_sync(kWholeWarp, at, owner) & 0xffffu;
      constexpr auto kLength = static_cast<int>(kPiece);
      for (int piece = lane; from + piece * kLength < to; piece += 32)
        groups.pieces[first_piece + static_cast<uint32_t>(piece)] = {from + piece * kLength,
                                                                     min(from + (piece + 1) * kLength, to)};
    }
    before += __shfl_sync(kWholeWarp, to_here, 31);
  }
  if (thread == 0)
    *groups.counts = {count, static_cast<int32_t>(sums.all >> 16), static_cast<int32_t>(sums.all & 0xffffu)};
}

/// Groups a batch in one block of kGroupThreads. `bags`: bag of each key. keys <= kMostSmallKeys.
__device__ void group_small_batch(BlockRange, const int32_t* rows, const int32_t* bags, RowGroups groups, int keys) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto& memory = *reinterpret_cast<SmallGroupMemory*>(shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int each = (keys + kGroupThreads - 1) / kGroupThreads, first = thread / 32 * 32 * each + thread % 32;

  uint32_t row[kKeysEach], tag[kKeysEach], last_row = 0;
#pragma unroll
  for (int j = 0; j < kKeysEach; ++j) {
    if (j >= each) break;
    const int p = first + 32 * j;
    // Padding has the largest row number, so it stays at the end in every pass.
    row[j] = p < keys ? static_cast<uint32_t>(rows[p]) : 0xffffffffu;
    tag[j] = static_cast<uint32_t>(p);
    if (p < keys) last_row = max(last_row, row[j]);
  }
  if (thread == 0) memory.last_row = 0;
  __syncthreads();
  for (int distance = 16; distance > 0; distance /= 2)
    last_row = max(last_row, __shfl_xor_sync(kWholeWarp, last_row, distance));
  if (thread % 32 == 0) atomicMax(&memory.last_row, last_row);
  __syncthreads();
  const int bits = 32 - __clz(static_cast<int>(memory.last_row));

  int shift = 0;
  do {  // runs at least one pass, because the code below reads the result of a pass
    sort_small_pass(memory, row, tag, each, first, shift);
    shift += kSortDigitBits;
  } while (shift < bits);

#pragma unroll
  for (int j = 0; j < kKeysEach; ++j) {
    const int p = first + 32 * j;
    if (j >= each || p >= keys) break;
    groups.rows[p] = static_cast<int32_t>(row[j]);
    groups.bags[p] = bags[tag[j] & 0xffffu];
  }
  const uint32_t runs = list_small_runs(memory, row, each, first, keys, groups);
  list_small_pieces(memory, runs, each, first, keys, groups);
}

}  // namespace
}  // namespace hctr::ops
