// Kernels of row swaps. The selection keeps row order: blocks count the selected rows of their tiles; a prefix sum
// computes each tile's first output position; then blocks write the selected rows to these positions.
#include <algorithm>

#include "core/device/copy_bytes.h"
#include "core/device/launch.cuh"
#include "ops/common/reduce.cuh"
#include "ops/embedding/prefix_sum.cuh"
#include "ops/embedding/row_swap.h"

namespace hctr::ops {
namespace {

constexpr int kSwapThreads = 256;
constexpr int64_t kTile = 16 * kSwapThreads;  // rows per tile

struct UseRange {
  const uint8_t* uses;
  int64_t first, last;
  int low, high;
  __device__ bool holds(int64_t row) const { return row <= last && uses[row] >= low && uses[row] <= high; }
};

int64_t tiles_of(int64_t rows) { return std::max<int64_t>(1, (rows + kTile - 1) / kTile); }

/// Each row of the batch has one run, so each element of `uses` has one writer.
__global__ void add_uses_kernel(RowGroups groups, int64_t key_capacity, RowUses to) {
  const int64_t runs = groups.counts->runs;
  uint32_t reads[2] = {};  // this thread's occurrences: [0] of all rows, [1] of rows below first_on_host
  for (int64_t run = hctr::cuda::thread_index(); run < runs; run += hctr::cuda::thread_count()) {
    const int32_t first = groups.run_begin[run], row = groups.rows[first];
    const auto count = static_cast<uint32_t>(groups.run_end(run, key_capacity) - first);
    to.uses[row] = RowUses::one_more(to.uses[row]);
    reads[0] += count;
    if (row < to.first_on_host) reads[1] += count;
  }
  for (int i = 0; i < 2; ++i) {
    const uint32_t of_warp = cuda::warp_sum(reads[i]);
    if (threadIdx.x % 32 == 0 && of_warp != 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(&to.reads[i]), static_cast<unsigned long long>(of_warp));
  }
}

/// Counts the rows per value of `uses`. There are fewer than 2^31 rows, so no counter overflows.
__global__ void count_uses_kernel(const uint8_t* uses, int64_t first, int64_t last, uint32_t* counts) {
  __shared__ uint32_t of_block[256];
  of_block[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t row = first + hctr::cuda::thread_index(); row <= last; row += hctr::cuda::thread_count()) {
    // Most rows have 0 uses. The lanes with equal `use` add their count in one atomic operation.
    const uint32_t use = uses[row];
    const uint32_t peers = __match_any_sync(__activemask(), use);
    if (static_cast<int>(threadIdx.x % 32) == __ffs(static_cast<int>(peers)) - 1)
      atomicAdd(&of_block[use], static_cast<uint32_t>(__popc(peers)));
  }
  __syncthreads();
  if (of_block[threadIdx.x] != 0) atomicAdd(&counts[threadIdx.x], of_block[threadIdx.x]);
}

__global__ void count_tiles_kernel(UseRange range, int64_t tiles, int32_t* of_tile) {
  __shared__ int32_t sum;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    int32_t mine = 0;
    for (int64_t i = threadIdx.x; i < kTile; i += kSwapThreads) mine += range.holds(range.first + tile * kTile + i);
    if (mine != 0) atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) of_tile[tile] = sum;
    __syncthreads();
  }
}

__global__ void write_tiles_kernel(UseRange range, int64_t tiles, const int32_t* before, int64_t most, int32_t* out) {
  constexpr int kWarps = kSwapThreads / 32;
  __shared__ int32_t of_warp[kWarps];
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int64_t position = before[tile];
    if (position >= most) return;  // the output is full; the remaining tiles start even later
    for (int64_t i = 0; i < kTile; i += kSwapThreads) {
      const int64_t row = range.first + tile * kTile + i + threadIdx.x;
      const bool chosen = range.holds(row);
      const uint32_t votes = __ballot_sync(0xffffffffu, chosen);
      if (lane == 0) of_warp[warp] = __popc(votes);
      __syncthreads();
      int32_t below = __popc(votes & ((1u << lane) - 1)), all = 0;
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp) below += of_warp[w];
        all += of_warp[w];
      }
      if (chosen && position + below < most) out[position + below] = static_cast<int32_t>(row);
      position += all;
      __syncthreads();
    }
  }
}

template <class Word>
__global__ void swap_rows_kernel(const int32_t* one, const int32_t* other, int64_t count, Word* column, int64_t words) {
  for (int64_t i = hctr::cuda::thread_index(); i < count * words; i += hctr::cuda::thread_count()) {
    Word *const a = column + one[i / words] * words + i % words, *const b =
                                                                     column + other[i / words] * words + i % words;
    const Word of_a = *a, of_b = *b;
    *a = of_b;
    *b = of_a;
  }
}

template <class Word>
void swap_words(Context& ctx, const int32_t* one, const int32_t* other, int64_t count, void* column, int64_t bytes) {
  const int64_t words = bytes / static_cast<int64_t>(sizeof(Word));
  hctr::cuda::launch(ctx, "swap_rows", hctr::cuda::grid_for(count * words), swap_rows_kernel<Word>, one, other, count,
                     static_cast<Word*>(column), words);
}

__global__ void note_places_kernel(const int32_t* rows, int64_t count, const int32_t* numbers, int32_t* places) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count())
    places[numbers[rows[i]]] = rows[i];
}

__global__ void find_places_kernel(const int32_t* places, int64_t count, int32_t* rows) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count()) rows[i] = places[rows[i]];
}

__global__ void mark_rows_kernel(const int32_t* rows, int64_t count, uint8_t* marks, uint8_t bits) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count()) marks[rows[i]] |= bits;
}

__global__ void halve_uses_kernel(int64_t rows, uint8_t* uses) {
  for (int64_t row = 1 + hctr::cuda::thread_index(); row <= rows; row += hctr::cuda::thread_count()) uses[row] /= 2;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

void add_uses(Context& ctx, RowGroups groups, int64_t key_capacity, RowUses to) {
  launch(ctx, "add_uses", grid_for(key_capacity), add_uses_kernel, groups, key_capacity, to);
}

size_t swap_scratch_bytes(int64_t rows) {
  const int64_t tiles = tiles_of(rows);
  return padded_bytes(std::max<int64_t>(tiles, 256)) + prefix_sums_bytes(tiles);
}

void count_uses(Context& ctx, const uint8_t* uses, int64_t first, int64_t last, std::byte* scratch, UseCounts& counts) {
  auto* const on_device = reinterpret_cast<uint32_t*>(scratch);
  uint32_t words[256] = {};
  zero_bytes(ctx.stream(), on_device, sizeof words);
  launch(ctx, "count_uses",
         grid_for(std::max<int64_t>(last - first + 1, 0), kSwapThreads, hctr::cuda::blocks_of_device(8)),
         count_uses_kernel, uses, first, last, on_device);
  copy_bytes(ctx.stream(), words, on_device, sizeof words);
  ctx.stream().synchronize();
  std::copy(words, words + 256, counts.begin());
}

void select_by_uses(Context& ctx, const uint8_t* uses, int64_t first, int64_t last, int low, int high, int64_t most,
                    std::byte* scratch, int32_t* out) {
  const UseRange range{uses, first, last, low, high};
  const int64_t tiles = tiles_of(last - first + 1), blocks = std::min(tiles, hctr::cuda::blocks_of_device(8));
  auto* const of_tile = reinterpret_cast<int32_t*>(scratch);
  launch(ctx, "count_tiles", {blocks, kSwapThreads, 0}, count_tiles_kernel, range, tiles, of_tile);
  prefix_sums(ctx, of_tile, of_tile, tiles, scratch + padded_bytes(std::max<int64_t>(tiles, 256)));
  launch(ctx, "write_tiles", {blocks, kSwapThreads, 0}, write_tiles_kernel, range, tiles, of_tile, most, out);
}

void swap_rows(Context& ctx, const int32_t* one, const int32_t* other, int64_t count, void* column, int64_t bytes) {
  if (bytes % 16 == 0)
    swap_words<uint4>(ctx, one, other, count, column, bytes);
  else if (bytes % 4 == 0)
    swap_words<uint32_t>(ctx, one, other, count, column, bytes);
  else if (bytes % 2 == 0)
    swap_words<uint16_t>(ctx, one, other, count, column, bytes);
  else
    swap_words<uint8_t>(ctx, one, other, count, column, bytes);
}

void note_places(Context& ctx, const int32_t* rows, int64_t count, const int32_t* numbers, int32_t* places) {
  launch(ctx, "note_places", grid_for(count), note_places_kernel, rows, count, numbers, places);
}

void find_places(Context& ctx, const int32_t* places, int64_t count, int32_t* rows) {
  launch(ctx, "find_places", grid_for(count), find_places_kernel, places, count, rows);
}

void mark_rows(Context& ctx, const int32_t* rows, int64_t count, uint8_t* marks, uint8_t bits) {
  launch(ctx, "mark_rows", grid_for(count), mark_rows_kernel, rows, count, marks, bits);
}

void halve_uses(Context& ctx, int64_t rows, uint8_t* uses) {
  launch(ctx, "halve_uses", grid_for(rows), halve_uses_kernel, rows, uses);
}

}  // namespace cuda
}  // namespace hctr::ops
