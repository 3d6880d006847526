// Kernels of row removal. A radix select finds the rows with the lowest RowRanks, digit by digit, from the most
// significant digit on. A pass over the rows counts the rows per digit value; then the host selects the digit value of
// the last row to remove. Counts are integers, so the order of additions does not affect them.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_select.cuh>

#include "core/device/copy_bytes.h"
#include "core/device/launch.cuh"
#include "ops/common/reduce.cuh"
#include "ops/embedding/row_removal.h"

namespace hctr::ops {
namespace {

constexpr int kDigits = 16, kDigitBits = 8;
static_assert(RemovalMemory::kCounters == 1 << kDigitBits);

/// A partial rank: its upper `digits` digits are known.
struct Prefix {
  RowRanks::Rank rank{0, 0};
  int digits = 0;

  __host__ __device__ static int shift(int digit) { return (kDigits / 2 - 1 - digit % (kDigits / 2)) * kDigitBits; }
  __host__ __device__ static uint32_t digit_of(const RowRanks::Rank& rank, int digit) {
    return static_cast<uint32_t>((digit < kDigits / 2 ? rank.high : rank.low) >> shift(digit)) &
           (RemovalMemory::kCounters - 1);
  }
  __device__ bool holds(const RowRanks::Rank& other) const {
    for (int d = 0; d < digits; ++d)
      if (digit_of(rank, d) != digit_of(other, d)) return false;
    return true;
  }
  void settle(uint32_t value) {
    (digits < kDigits / 2 ? rank.high : rank.low) |= static_cast<uint64_t>(value) << shift(digits);
    ++digits;
  }
};

__global__ void set_fates_kernel(const int32_t* rows, int64_t count, Fate fate, Fate* fates) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count())
    if (rows[i] != 0) fates[rows[i]] = fate;
}

__global__ void recent_rows_stay_kernel(const uint32_t* last_seen, uint32_t since, int64_t first, int64_t last,
                                        Fate* fates) {
  for (int64_t row = first + hctr::cuda::thread_index(); row <= last; row += hctr::cuda::thread_count())
    if (fates[row] == Fate::open && not_before(last_seen[row], since)) fates[row] = Fate::stays;
}

__global__ void open_fates_kernel(int64_t rows, Fate* fates) {
  for (int64_t row = 1 + hctr::cuda::thread_index(); row <= rows; row += hctr::cuda::thread_count())
    if (fates[row] == Fate::stays) fates[row] = Fate::open;
}

__global__ void rows_below_leave_kernel(const uint32_t* values, uint32_t bound, int64_t first, int64_t last,
                                        Fate* fates) {
  for (int64_t row = first + hctr::cuda::thread_index(); row <= last; row += hctr::cuda::thread_count())
    if (values[row] < bound) fates[row] = Fate::leaves;
}

/// counters[v] = number of open rows whose rank has this prefix and v as the next digit. There are fewer than 2^31
/// rows, so no counter overflows.
__global__ void count_digits_kernel(RowRanks ranks, Prefix prefix, int64_t first, int64_t last, const Fate* fates,
                                    uint32_t* counters) {
  __shared__ uint32_t of_block[RemovalMemory::kCounters];
  for (int i = static_cast<int>(threadIdx.x); i < RemovalMemory::kCounters; i += static_cast<int>(blockDim.x))
    of_block[i] = 0;
  __syncthreads();
  for (int64_t row = first + hctr::cuda::thread_index(); row <= last; row += hctr::cuda::thread_count()) {
    if (fates[row] != Fate::open) continue;
    const RowRanks::Rank rank = ranks.of(row);
    if (prefix.holds(rank)) atomicAdd(&of_block[Prefix::digit_of(rank, prefix.digits)], 1u);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < RemovalMemory::kCounters; i += static_cast<int>(blockDim.x))
    if (of_block[i] != 0) atomicAdd(&counters[i], of_block[i]);
}

__global__ void up_to_leave_kernel(RowRanks ranks, RowRanks::Rank last_to_leave, int64_t first, int64_t last,
                                   Fate* fates) {
  for (int64_t row = first + hctr::cuda::thread_index(); row <= last; row += hctr::cuda::thread_count())
    if (fates[row] == Fate::open && ranks.of(row) <= last_to_leave) fates[row] = Fate::leaves;
}

__global__ void count_fates_kernel(Fate fate, int64_t rows, const Fate* fates, uint32_t* counter) {
  uint32_t mine = 0;
  for (int64_t row = 1 + hctr::cuda::thread_index(); row <= rows; row += hctr::cuda::thread_count())
    mine += fates[row] == fate;
  const uint32_t of_warp = cuda::warp_sum(mine);
  if (threadIdx.x % 32 == 0 && of_warp != 0) atomicAdd(counter, of_warp);
}

struct HasFate {
  const Fate* fates;
  bool leaves;
  __device__ bool operator()(int32_t row) const { return (fates[row] == Fate::leaves) == leaves; }
};

/// Selects rows of [first, first + count) in ascending order: the rows with Fate::leaves if the argument `leaves` is
/// true, otherwise all other rows.
void select_rows(cudaStream_t stream, void* temporary, size_t& bytes, const Fate* fates, bool leaves, int64_t first,
                 int64_t count, int32_t* out, uint32_t* selected) {
  HCTR_CHECK(cub::DeviceSelect::If(temporary, bytes, thrust::counting_iterator<int32_t>(static_cast<int32_t>(first)),
                                   out, selected, static_cast<int>(count), HasFate{fates, leaves}, stream));
}

template <class Word>
__global__ void move_rows_kernel(RowMoves moves, Word* column, int64_t words) {
  for (int64_t i = hctr::cuda::thread_index(); i < moves.count * words; i += hctr::cuda::thread_count())
    column[moves.to[i / words] * words + i % words] = column[moves.from[i / words] * words + i % words];
}

template <class Word>
void move_words(Context& ctx, const RowMoves& moves, void* column, int64_t bytes) {
  const int64_t words = bytes / static_cast<int64_t>(sizeof(Word));
  hctr::cuda::launch(ctx, "move_rows", hctr::cuda::grid_for(moves.count * words), move_rows_kernel<Word>, moves,
                     static_cast<Word*>(column), words);
}

__global__ void follow_moves_kernel(RowMoves moves, const Fate* fates, int32_t* rows, int64_t count, int32_t instead,
                                    uint64_t* replaced) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count()) {
    const int32_t row = rows[i];
    if (row == 0) continue;
    if (fates[row] == Fate::leaves) {
      rows[i] = instead;
      if (replaced) atomicAdd(reinterpret_cast<unsigned long long*>(replaced), 1ull);
    } else if (row > moves.rows) {
      int64_t low = 0, high = moves.count - 1;  // moves.from contains the row
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (moves.from[middle] < row)
          low = middle + 1;
        else
          high = middle;
      }
      rows[i] = moves.to[low];
    }
  }
}

/// Zeroes listed rows byte by byte. The rows of these arrays have only one word or one byte.
__global__ void zero_rows_kernel(const int32_t* rows, int64_t count, uint8_t* column, int64_t bytes) {
  for (int64_t i = hctr::cuda::thread_index(); i < count * bytes; i += hctr::cuda::thread_count())
    column[rows[i / bytes] * bytes + i % bytes] = 0;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

size_t removal_temporary_bytes(int64_t rows) {
  size_t bytes = 0;
  select_rows(nullptr, nullptr, bytes, nullptr, true, 1, std::max<int64_t>(rows, 1), nullptr, nullptr);
  return bytes;
}

void set_fates(Context& ctx, const int32_t* rows, int64_t count, Fate fate, Fate* fates) {
  launch(ctx, "set_fates", grid_for(count), set_fates_kernel, rows, count, fate, fates);
}

void recent_rows_stay(Context& ctx, const uint32_t* last_seen, uint32_t since, int64_t first, int64_t last,
                      Fate* fates) {
  launch(ctx, "recent_rows_stay", grid_for(std::max<int64_t>(last - first + 1, 0)), recent_rows_stay_kernel, last_seen,
         since, first, last, fates);
}

void open_fates(Context& ctx, int64_t rows, Fate* fates) {
  launch(ctx, "open_fates", grid_for(rows), open_fates_kernel, rows, fates);
}

void rows_below_leave(Context& ctx, const uint32_t* values, uint32_t bound, int64_t first, int64_t last, Fate* fates) {
  launch(ctx, "rows_below_leave", grid_for(std::max<int64_t>(last - first + 1, 0)), rows_below_leave_kernel, values,
         bound, first, last, fates);
}

void lowest_rows_leave(Context& ctx, RowRanks ranks, int64_t first, int64_t last, int64_t number,
                       const RemovalMemory& memory) {
  if (number == 0) return;
  const auto grid = grid_for(std::max<int64_t>(last - first + 1, 0), 256, hctr::cuda::blocks_of_device(8));
  Prefix prefix;
  int64_t left = number;  // rows still to select among those whose rank has this prefix
  while (prefix.digits < kDigits) {
    zero_bytes(ctx.stream(), memory.counters, RemovalMemory::kCounters * sizeof(uint32_t));
    launch(ctx, "count_digits", grid, count_digits_kernel, ranks, prefix, first, last, memory.fates, memory.counters);
    uint32_t counts[RemovalMemory::kCounters];
    copy_bytes(ctx.stream(), counts, memory.counters, sizeof counts);
    ctx.stream().synchronize();
    uint32_t digit = 0;
    for (; digit < RemovalMemory::kCounters && counts[digit] < left; ++digit) left -= counts[digit];
    HCTR_EXPECT(digit < RemovalMemory::kCounters, number, " rows must be evicted, ", left, " more than exist");
    prefix.settle(digit);
  }
  launch(ctx, "up_to_leave", grid, up_to_leave_kernel, ranks, prefix.rank, first, last, memory.fates);
}

void count_fates(Context& ctx, Fate fate, int64_t rows, const RemovalMemory& memory, int64_t& count) {
  uint32_t counted = 0;
  zero_bytes(ctx.stream(), memory.counters, sizeof counted);
  launch(ctx, "count_fates", grid_for(rows), count_fates_kernel, fate, rows, memory.fates, memory.counters);
  copy_bytes(ctx.stream(), &counted, memory.counters, sizeof counted);
  ctx.stream().synchronize();
  count = counted;
}

void plan_moves(Context& ctx, int64_t rows, const RemovalMemory& memory, RowMoves& moves) {
  int64_t leaving = 0;
  cuda::count_fates(ctx, Fate::leaves, rows, memory, leaving);
  moves = {memory.from, memory.to, 0, rows - leaving};
  if (leaving == 0 || moves.rows == 0) return;
  const cudaStream_t stream = hctr::cuda::stream_of(ctx.stream());
  size_t bytes = removal_temporary_bytes(rows);
  uint32_t counts[2] = {};
  select_rows(stream, memory.temporary, bytes, memory.fates, true, 1, moves.rows, memory.to, memory.counters);
  bytes = removal_temporary_bytes(rows);
  select_rows(stream, memory.temporary, bytes, memory.fates, false, moves.rows + 1, leaving, memory.from,
              memory.counters + 1);
  copy_bytes(ctx.stream(), counts, memory.counters, sizeof counts);
  ctx.stream().synchronize();
  HCTR_EXPECT(counts[0] == counts[1], counts[0], " free slots for ", counts[1], " rows");
  moves.count = counts[0];
}

void move_rows(Context& ctx, RowMoves moves, void* column, int64_t bytes) {
  if (bytes % 16 == 0)
    move_words<uint4>(ctx, moves, column, bytes);
  else if (bytes % 4 == 0)
    move_words<uint32_t>(ctx, moves, column, bytes);
  else if (bytes % 2 == 0)
    move_words<uint16_t>(ctx, moves, column, bytes);
  else
    move_words<uint8_t>(ctx, moves, column, bytes);
}

void follow_moves(Context& ctx, RowMoves moves, const Fate* fates, int32_t* rows, int64_t count, int32_t instead,
                  uint64_t* replaced) {
  launch(ctx, "follow_moves", grid_for(count), follow_moves_kernel, moves, fates, rows, count, instead, replaced);
}

void zero_rows(Context& ctx, const int32_t* rows, int64_t count, void* column, int64_t bytes) {
  launch(ctx, "zero_rows", grid_for(count * bytes), zero_rows_kernel, rows, count, static_cast<uint8_t*>(column),
         bytes);
}

}  // namespace cuda
}  // namespace hctr::ops
