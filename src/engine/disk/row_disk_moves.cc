// Moves rows to and from disk in blocks. A kernel packs or unpacks the records of a block, and the block is copied as a
// whole.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/device/copy_bytes.h"
#include "engine/disk/disk_columns.h"
#include "engine/disk/row_disk_tier.h"

namespace hctr {
namespace {

/// Copies one piece of a block of records between host and device. On a CPU, does nothing, because the piece is the
/// block itself.
void copy_piece(StreamRef stream, void* to, const void* from, size_t bytes) {
  if (to != from) copy_bytes(stream, to, from, bytes);
}

/// Stores with each evicted row its record number in the base checkpoint and its change marks. `rows` is sorted.
void keep_changes(const RowArrays& arrays, std::span<const int32_t> rows, std::span<DiskRows::Row> leaving) {
  if (!arrays.base_places() || rows.empty()) return;
  // Copy the whole range of rows at once, including rows between them that stay in memory. The range is at most about
  // sixteen times as long as `rows`, because an eviction removes at least a sixteenth of all rows in memory.
  const int64_t first = rows.front(), count = rows.back() - first + 1;
  std::vector<int32_t> places(static_cast<size_t>(count));
  std::vector<uint8_t> marks(static_cast<size_t>(count));
  const StreamRef stream = arrays.runtime().prepare_stream();
  copy_bytes(stream, places.data(), arrays.base_places() + first, places.size() * sizeof(int32_t));
  copy_bytes(stream, marks.data(), arrays.marks() + first, marks.size());
  stream.synchronize();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<size_t>(rows[i] - first);
    leaving[i].base = static_cast<uint32_t>(places[at]) & DiskRows::kMostBaseRows;
    leaving[i].marks = uint32_t{marks[at]} & 3u;
  }
}

}  // namespace

ops::RecordParts RowDiskTier::record_parts(const RecordBlocks::Block& block, bool with_records) const {
  ops::RecordParts parts;
  for (const RowColumn& column : arrays_.columns()) {
    if (!goes_to_disk(column) || (in_record(column) && !with_records)) continue;
    const StridedBytes at = values_of(column, block.entries, block.records);
    parts.add({column.memory.data(), at.first, column.bytes_per_row, static_cast<int64_t>(at.stride)});
  }
  return parts;
}

ops::RecordParts RowDiskTier::parts_that_come(const RecordBlocks::Block& block, From from) const {
  ops::RecordParts parts = record_parts(block, from == From::disk);
  if (!arrays_.base_places()) return parts;
  auto* const entry = reinterpret_cast<std::byte*>(block.entries);
  constexpr int64_t kStride = sizeof(DiskRows::Row);
  parts.add({reinterpret_cast<std::byte*>(arrays_.base_places()), entry + offsetof(DiskRows::Row, place),
             sizeof(int32_t), kStride});
  parts.add({reinterpret_cast<std::byte*>(arrays_.marks()), entry + offsetof(DiskRows::Row, crc), 1,
             kStride});  // the marks are stored in the lowest byte of `crc`
  return parts;
}

void RowDiskTier::for_record_pieces(size_t rows, const RecordBlocks::Block& block,
                                    const std::function<void(size_t, size_t, const RecordBlocks::Block&)>& body) {
  if (!runtime_.device().is_cuda()) return body(0, rows, block);
  const size_t most = records_.rows_in(arrays_.staging().size());
  const RecordBlocks::Block piece = records_.in(arrays_.staging().data(), most);
  for (size_t first = 0; first < rows; first += most) body(first, std::min(most, rows - first), piece);
}

RecordBlocks::Block RowDiskTier::start_records(std::span<const int32_t> rows) {
  Context ctx(runtime_, runtime_.prepare_stream());
  const RecordBlocks::Block block = records_.next_leaving(arrays_.capacity());
  disk_->wait_written(block.records);
  std::copy(rows.begin(), rows.end(), block.numbers);
  const auto record_bytes = static_cast<size_t>(disk_->record_bytes());
  for_record_pieces(rows.size(), block, [&](size_t first, size_t count, const RecordBlocks::Block& piece) {
    copy_piece(ctx.stream(), piece.numbers, block.numbers + first, count * sizeof(int32_t));
    ops::gather_records(ctx, record_parts(piece, true), piece.numbers, static_cast<int64_t>(count));
    copy_piece(ctx.stream(), block.entries + first, piece.entries, count * sizeof(DiskRows::Row));
    copy_piece(ctx.stream(), block.records + first * record_bytes, piece.records, count * record_bytes);
  });
  return block;
}

void RowDiskTier::put_out(std::span<const int32_t> rows, size_t& left) {
  const auto rows_of = [&](size_t first) { return rows.subspan(first, std::min(block_rows(), rows.size() - first)); };
  left = 0;
  if (rows.empty()) return;
  RecordBlocks::Block next = start_records(rows_of(0));
  while (left < rows.size()) {
    runtime_.prepare_stream().synchronize();
    const RecordBlocks::Block block = next;
    const std::span<const int32_t> numbers = rows_of(left);
    const std::span<DiskRows::Row> leaving(block.entries, numbers.size());
    for (DiskRows::Row& row : leaving) {  // set the fields of DiskRows::Row for which the table has no column
      if (!arrays_.slots()) row.slot = 0;
      row.base = row.marks = 0;
    }
    keep_changes(arrays_, numbers, leaving);
    if (const size_t then = left + numbers.size(); then < rows.size()) next = start_records(rows_of(then));
    disk_->add_behind(leaving, block.records);
    left += numbers.size();
  }
}

void RowDiskTier::take_in(Context& ctx, std::span<const DiskRows::Row> rows, From from, To to) {
  const RecordBlocks::Block block = records_.coming();
  std::copy(rows.begin(), rows.end(), block.entries);
  if (from == From::disk) disk_->read(rows, block.records);
  if (arrays_.base_places())  // scatter_records() sets base_places and marks from the fields `place` and `crc`
    for (DiskRows::Row& row : std::span(block.entries, rows.size())) {
      row.place = row.base;
      row.crc = row.marks;
    }
  const RowIndex::Progress before = index_.progress();
  if (to == To::places) {
    const std::span<const int32_t> places = free_.take(rows.size());
    std::copy(places.begin(), places.end(), block.numbers);
    into_places_ += static_cast<int64_t>(places.size());
    if (from == From::new_keys) entered_.insert(entered_.end(), places.begin(), places.end());
  } else {
    HCTR_EXPECT(before.rows + rows.size() <= static_cast<size_t>(arrays_.capacity()), arrays_.label(), ": ",
                before.rows, " rows and ", rows.size(), " rows from disk exceed the capacity ", arrays_.capacity());
    std::iota(block.numbers, block.numbers + rows.size(), static_cast<int32_t>(before.rows + 1));
  }
  // Steps may be running meanwhile. They use neither free row numbers nor numbers above those of their own rows.
  const auto record_bytes = static_cast<size_t>(disk_->record_bytes());
  for_record_pieces(rows.size(), block, [&](size_t first, size_t count, const RecordBlocks::Block& piece) {
    const auto some = static_cast<int64_t>(count);
    copy_piece(ctx.stream(), piece.numbers, block.numbers + first, count * sizeof(int32_t));
    copy_piece(ctx.stream(), piece.entries, block.entries + first, count * sizeof(DiskRows::Row));
    if (from == From::disk)
      copy_piece(ctx.stream(), piece.records, block.records + first * record_bytes, count * record_bytes);
    ops::scatter_records(ctx, parts_that_come(piece, from), piece.numbers, some);
    if (from == From::new_keys) ops::init_rows(ctx, piece.numbers, some, arrays_.init(), arrays_.data());
    if (to == To::places) ops::set_fates(ctx, piece.numbers, some, ops::Fate::open, arrays_.left());
    ops::index_enter(ctx, index_.view(), piece.numbers, some);
  });
  if (to == To::end) ops::index_add_rows(ctx, index_.view(), static_cast<uint32_t>(rows.size()));
  if (from == From::disk) disk_->remove(rows);  // the rows are no longer on disk
  ctx.stream().synchronize();
  if (to == To::places) return;
  // Make the new rows visible in stream order after the queued steps, because each queued step uses only the rows that
  // existed when it was prepared.
  const auto last = before.rows + static_cast<uint32_t>(rows.size());
  Context behind(runtime_, runtime_.compute_stream());
  ops::index_finish_rows(behind, index_.view(), last);
  index_.tell_host({before.batches, last});
}

}  // namespace hctr
