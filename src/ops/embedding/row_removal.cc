#include "ops/embedding/row_removal.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace hctr::ops {
namespace {

constexpr size_t kAlign = 256;
size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
size_t fate_bytes(int64_t rows) { return aligned(static_cast<size_t>(rows) + 1); }
size_t list_bytes(int64_t rows) { return aligned(static_cast<size_t>(rows / 2 + 1) * sizeof(int32_t)); }

}  // namespace

RemovalMemory::RemovalMemory(std::byte* block, int64_t rows) {
  const auto take = [&block](size_t bytes) {
    block += bytes;
    return block - bytes;
  };
  fates = reinterpret_cast<Fate*>(take(fate_bytes(rows)));
  from = reinterpret_cast<int32_t*>(take(list_bytes(rows)));
  to = reinterpret_cast<int32_t*>(take(list_bytes(rows)));
  counters = reinterpret_cast<uint32_t*>(take(aligned(kCounters * sizeof(uint32_t))));
  temporary = block;
}

size_t removal_bytes(Device device, int64_t rows) {
  const size_t lists = fate_bytes(rows) + 2 * list_bytes(rows) + aligned(RemovalMemory::kCounters * sizeof(uint32_t));
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return lists + cuda::removal_temporary_bytes(rows);
  }
  return lists;
}

void set_fates(Context& ctx, const int32_t* rows, int64_t count, Fate fate, Fate* fates) {
  HCTR_ON_DEVICE(ctx, set_fates(ctx, rows, count, fate, fates));
}
void recent_rows_stay(Context& ctx, const uint32_t* last_seen, uint32_t since, int64_t first, int64_t last,
                      Fate* fates) {
  HCTR_ON_DEVICE(ctx, recent_rows_stay(ctx, last_seen, since, first, last, fates));
}
void open_fates(Context& ctx, int64_t rows, Fate* fates) { HCTR_ON_DEVICE(ctx, open_fates(ctx, rows, fates)); }
void rows_below_leave(Context& ctx, const uint32_t* values, uint32_t bound, int64_t first, int64_t last, Fate* fates) {
  HCTR_ON_DEVICE(ctx, rows_below_leave(ctx, values, bound, first, last, fates));
}
void lowest_rows_leave(Context& ctx, RowRanks ranks, int64_t first, int64_t last, int64_t number,
                       const RemovalMemory& memory) {
  HCTR_ON_DEVICE(ctx, lowest_rows_leave(ctx, ranks, first, last, number, memory));
}
void count_fates(Context& ctx, Fate fate, int64_t rows, const RemovalMemory& memory, int64_t& count) {
  HCTR_ON_DEVICE(ctx, count_fates(ctx, fate, rows, memory, count));
}
void plan_moves(Context& ctx, int64_t rows, const RemovalMemory& memory, RowMoves& moves) {
  HCTR_ON_DEVICE(ctx, plan_moves(ctx, rows, memory, moves));
}
void move_rows(Context& ctx, RowMoves moves, void* column, int64_t bytes) {
  HCTR_ON_DEVICE(ctx, move_rows(ctx, moves, column, bytes));
}
void follow_moves(Context& ctx, RowMoves moves, const Fate* fates, int32_t* rows, int64_t count, int32_t instead,
                  uint64_t* replaced) {
  HCTR_ON_DEVICE(ctx, follow_moves(ctx, moves, fates, rows, count, instead, replaced));
}
void zero_rows(Context& ctx, const int32_t* rows, int64_t count, void* column, int64_t bytes) {
  HCTR_ON_DEVICE(ctx, zero_rows(ctx, rows, count, column, bytes));
}

namespace cpu {

void set_fates(Context&, const int32_t* rows, int64_t count, Fate fate, Fate* fates) {
  for (int64_t i = 0; i < count; ++i)
    if (rows[i] != 0) fates[rows[i]] = fate;
}

void recent_rows_stay(Context&, const uint32_t* last_seen, uint32_t since, int64_t first, int64_t last, Fate* fates) {
  for (int64_t row = first; row <= last; ++row)
    if (fates[row] == Fate::open && not_before(last_seen[row], since)) fates[row] = Fate::stays;
}

void open_fates(Context&, int64_t rows, Fate* fates) {
  std::replace(fates + 1, fates + rows + 1, Fate::stays, Fate::open);
}

void rows_below_leave(Context&, const uint32_t* values, uint32_t bound, int64_t first, int64_t last, Fate* fates) {
  for (int64_t row = first; row <= last; ++row)
    if (values[row] < bound) fates[row] = Fate::leaves;
}

void lowest_rows_leave(Context&, RowRanks ranks, int64_t first, int64_t last, int64_t number,
                       const RemovalMemory& memory) {
  std::vector<int32_t> open;
  for (int64_t row = first; row <= last; ++row)
    if (memory.fates[row] == Fate::open) open.push_back(static_cast<int32_t>(row));
  HCTR_EXPECT(number <= static_cast<int64_t>(open.size()), number, " rows must be evicted, but only ", open.size(),
              " can be");
  std::nth_element(open.begin(), open.begin() + number, open.end(),
                   [&](int32_t a, int32_t b) { return a != b && ranks.of(a) <= ranks.of(b); });
  for (int64_t i = 0; i < number; ++i) memory.fates[open[static_cast<size_t>(i)]] = Fate::leaves;
}

void count_fates(Context&, Fate fate, int64_t rows, const RemovalMemory& memory, int64_t& count) {
  count = std::count(memory.fates + 1, memory.fates + rows + 1, fate);
}

void plan_moves(Context& ctx, int64_t rows, const RemovalMemory& memory, RowMoves& moves) {
  int64_t leaving = 0, holes = 0, fillers = 0;
  cpu::count_fates(ctx, Fate::leaves, rows, memory, leaving);
  const int64_t end = rows - leaving;
  for (int64_t row = 1; row <= end; ++row)
    if (memory.fates[row] == Fate::leaves) memory.to[holes++] = static_cast<int32_t>(row);
  for (int64_t row = end + 1; row <= rows; ++row)
    if (memory.fates[row] != Fate::leaves) memory.from[fillers++] = static_cast<int32_t>(row);
  moves = {memory.from, memory.to, holes, end};
}

void move_rows(Context& ctx, RowMoves moves, void* column, int64_t bytes) {
  ctx.threads().parallel_for(moves.count, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(static_cast<std::byte*>(column) + moves.to[i] * bytes,
                  static_cast<std::byte*>(column) + moves.from[i] * bytes, static_cast<size_t>(bytes));
  });
}

void follow_moves(Context&, RowMoves moves, const Fate* fates, int32_t* rows, int64_t count, int32_t instead,
                  uint64_t* replaced) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t row = rows[i];
    if (row == 0) continue;
    if (fates[row] == Fate::leaves) {
      rows[i] = instead;
      if (replaced) ++*replaced;
    } else if (row > moves.rows) {
      rows[i] = moves.to[std::lower_bound(moves.from, moves.from + moves.count, row) - moves.from];
    }
  }
}

void zero_rows(Context&, const int32_t* rows, int64_t count, void* column, int64_t bytes) {
  for (int64_t i = 0; i < count; ++i)
    std::memset(static_cast<std::byte*>(column) + rows[i] * bytes, 0, static_cast<size_t>(bytes));
}

}  // namespace cpu
}  // namespace hctr::ops
