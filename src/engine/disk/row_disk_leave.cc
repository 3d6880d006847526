// Evicts rows to disk. Incoming rows reuse the row numbers of evicted rows, so no other row moves.
//
// A row number is free as soon as its row is evicted. No queued step uses the row: either the rows of all queued steps
// stay in memory, or the host has waited for all steps. No key maps to the row: index_remove() has replaced the row's
// index entry by a tombstone.
//
// Rows are evicted on the prepare stream, concurrently with queued steps: the step of the previous batch, and earlier
// steps within the ring of buffers. Rows of older batches have their final values, because the prepare stream has
// waited for the step that last used the buffer. Running steps do not access these rows. Only prepare() writes the
// index, the access statistics and the change marks; running steps do not access these either.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/device/copy_bytes.h"
#include "engine/disk/row_disk_tier.h"

namespace hctr {
namespace {

constexpr int64_t kShareThatLeaves = 16;  // an eviction evicts at least 1/kShareThatLeaves of the rows in memory

/// The row score is: last step + steps_per_doubling * log2(1 + uses). Rows with the lowest score are evicted. Whenever
/// a row's uses double, the row stays for steps_per_doubling more steps. steps_per_doubling is the replacement period:
/// the number of steps in which all rows in memory would be replaced. With a smaller value, rows used once would
/// displace frequent rows. With a larger value, formerly frequent rows would stay too long.
uint32_t steps_per_doubling(const Turnover& turnover) { return static_cast<uint32_t>(std::min(turnover.steps(), 1e8)); }

}  // namespace

bool RowDiskTier::leave(int64_t least, int64_t needed, const int32_t* of_batch, int64_t count, Stay stay) {
  if (stay == Stay::of_batch) ++waits_to_leave_;
  const RowIndex::Progress now = index_.progress();
  const int64_t rows = now.rows, in_memory = rows - free_.count();
  Context ctx(runtime_, runtime_.prepare_stream());
  const ops::RemovalMemory memory(arrays_.left(), reinterpret_cast<uint32_t*>(arrays_.staging().data()));
  int64_t staying = 0;
  ops::set_fates(ctx, of_batch, count, ops::Fate::stays, arrays_.left());
  if (stay == Stay::recent && !recent_steps_.empty()) {
    const uint32_t since = *std::min_element(recent_steps_.begin(), recent_steps_.end(),
                                             [](uint32_t a, uint32_t b) { return !ops::not_before(a, b); });
    ops::recent_rows_stay(ctx, arrays_.access_stats().last_seen, since, index_.view().first_row, rows, arrays_.left());
  }
  ops::count_fates(ctx, ops::Fate::stays, rows, memory, staying);
  staying += index_.shared_rows();
  if (stay == Stay::recent && in_memory - staying < least) {
    ops::open_fates(ctx, rows, arrays_.left());
    return false;
  }
  HCTR_EXPECT(staying + needed <= arrays_.capacity(), arrays_.label(), ": a batch with ", staying + needed,
              " rows, capacity ", arrays_.capacity());
  // Evict many rows at a time, because the host waits for each choice of rows. Only the write from the blocks to disk
  // overlaps the next steps.
  const int64_t leaving = std::min(std::max(least, arrays_.capacity() / kShareThatLeaves), in_memory - staying);
  turnover_.add(now.batches, in_memory, leaving);
  const ops::RowRanks ranks{.keys = arrays_.keys(),
                            .slots = arrays_.slots(),
                            .scores = arrays_.access_stats().last_seen,
                            .uses = arrays_.access_stats().occurrences,
                            .per_doubling = steps_per_doubling(turnover_)};
  ops::lowest_rows_leave(ctx, ranks, index_.view().first_row, rows, leaving, memory);
  ops::open_fates(ctx, rows, arrays_.left());
  const std::vector<int32_t> numbers = rows_that_leave(rows);
  size_t left = 0;
  try {
    put_out(numbers, left);
  } catch (const Error&) {  // undo the eviction, so that all rows stay in memory
    arrays_.for_listed(ctx.stream(), numbers, [this](Context& own, const int32_t* some, int64_t several) {
      ops::set_fates(own, some, several, ops::Fate::open, arrays_.left());
    });
    take_from_disk(std::span(numbers).first(left));
    throw;
  }
  forget_rows(numbers);
  return true;
}

std::vector<int32_t> RowDiskTier::rows_that_leave(int64_t rows) const {
  std::vector<ops::Fate> fates(static_cast<size_t>(rows) + 1);
  copy_bytes(runtime_.prepare_stream(), fates.data(), arrays_.left(), fates.size());
  runtime_.prepare_stream().synchronize();
  std::vector<int32_t> numbers, leaving;
  const void* at = fates.data();  // memchr quickly skips the many rows that stay
  while ((at = std::memchr(at, static_cast<int>(ops::Fate::leaves),
                           static_cast<size_t>(fates.data() + fates.size() - static_cast<const ops::Fate*>(at))))) {
    numbers.push_back(static_cast<int32_t>(static_cast<const ops::Fate*>(at) - fates.data()));
    at = static_cast<const ops::Fate*>(at) + 1;
  }
  const std::span<const int32_t> have_left = free_.rows();
  std::set_difference(numbers.begin(), numbers.end(), have_left.begin(), have_left.end(), std::back_inserter(leaving));
  return leaving;
}

void RowDiskTier::take_from_disk(std::span<const int32_t> rows) {
  std::vector<DiskRows::Row> twice(rows.size());
  std::vector<std::byte> values;
  for (const RowColumn& column : arrays_.columns()) {
    if (!column.fixed()) continue;
    const auto bytes = static_cast<size_t>(column.bytes_per_row);
    values.resize(rows.size() * bytes);
    arrays_.copy_out(column, rows, values.data());
    const StridedBytes to = values_of(column, twice.data(), nullptr);
    for (size_t i = 0; i < rows.size(); ++i) std::memcpy(to.first + i * to.stride, values.data() + i * bytes, bytes);
  }
  disk_->remove(twice);
}

void RowDiskTier::forget_rows(std::span<const int32_t> rows) {
  const StreamRef stream = runtime_.prepare_stream();
  arrays_.for_listed(stream, rows, [this](Context& ctx, const int32_t* some, int64_t count) {
    ops::index_remove(ctx, index_.view(), some, count);
    // Zero the columns in which a new row expects zeros. Vectors, optimizer states, keys and slots need no zeros,
    // because they are written when a row number gets a key, and no code reads them for a free row number.
    for (RowColumn& column : arrays_.columns())
      if (!column.numbers && !column.fixed())
        ops::zero_rows(ctx, some, count, column.memory.data(), column.bytes_per_row);
    ops::set_fates(ctx, some, count, ops::Fate::leaves, arrays_.left());
  });
  free_.add(rows);
  index_.read_marks(stream);
}

void RowDiskTier::drop_refused_rows() {
  if (entered_.empty()) return;
  std::sort(entered_.begin(), entered_.end());
  forget_rows(std::exchange(entered_, {}));
}

int64_t RowDiskTier::remove_lowest(Context& ctx, const ops::RowRanks& ranks, int64_t rows, int64_t count,
                                   const ops::RemovalMemory& memory) {
  struct Ranked {
    ops::RowRanks::Rank rank;
    int64_t at;  // index in `on_disk`; -1: the row is in memory
  };
  const auto size = static_cast<size_t>(rows) + 1;
  std::vector<ops::Fate> fates(size);
  std::vector<int64_t> keys(size);
  std::vector<int32_t> slots(ranks.slots ? size : 0);
  std::vector<uint32_t> scores(size);
  const StreamRef stream = ctx.stream();
  copy_bytes(stream, fates.data(), memory.fates, size * sizeof(ops::Fate));
  copy_bytes(stream, keys.data(), ranks.keys, size * sizeof(int64_t));
  copy_bytes(stream, slots.data(), ranks.slots, slots.size() * sizeof(int32_t));
  copy_bytes(stream, scores.data(), ranks.scores, size * sizeof(uint32_t));
  stream.synchronize();
  std::vector<Ranked> all;
  const ops::RowRanks here{keys.data(), slots.empty() ? nullptr : slots.data(), scores.data()};
  for (int64_t row = index_.view().first_row; row <= rows; ++row)
    if (fates[static_cast<size_t>(row)] == ops::Fate::open) all.push_back({here.of(row), -1});
  const std::vector<DiskRows::Row> on_disk = disk_->sorted_rows();
  for (size_t i = 0; i < on_disk.size(); ++i) {
    const DiskRows::Row& row = on_disk[i];
    const uint32_t score = ranks.scores == arrays_.access_stats().last_seen ? row.last_seen : row.occurrences;
    all.push_back({ops::RowRanks{&row.key, &row.slot, &score}.of(0), static_cast<int64_t>(i)});
  }
  HCTR_EXPECT(count <= static_cast<int64_t>(all.size()), arrays_.label(), ": ", count, " rows of ", all.size(),
              " must be evicted");
  std::nth_element(all.begin(), all.begin() + count, all.end(), [](const Ranked& a, const Ranked& b) {
    return std::pair(a.rank.high, a.rank.low) < std::pair(b.rank.high, b.rank.low);
  });
  std::vector<DiskRows::Row> leaving;
  for (const Ranked& each : std::span(all).first(static_cast<size_t>(count)))
    if (each.at >= 0) leaving.push_back(on_disk[static_cast<size_t>(each.at)]);
  disk_->remove(leaving);
  return count - static_cast<int64_t>(leaving.size());
}

}  // namespace hctr
