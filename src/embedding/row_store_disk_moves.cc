// Rows that leave for the disk or come from it, block by block: a kernel puts the records of a block together, or takes
// them apart, and they are copied as a whole.
#include <algorithm>
#include <numeric>

#include "device/copy.h"
#include "embedding/row_store.h"

namespace hctr {
namespace {

constexpr size_t kRecordAlign = 16;
constexpr size_t kOfNumberAndEntry = sizeof(DiskRows::Row) + sizeof(int32_t);
static_assert(sizeof(DiskRows::Row) % kRecordAlign == 0);

/// On the CPU a piece is the block itself.
void copy_piece(StreamRef stream, void* to, const void* from, size_t bytes) {
  if (to != from) copy_bytes(stream, to, from, bytes);
}

}  // namespace

ops::RecordParts RowStore::record_parts(const RecordBlock& block) const {
  ops::RecordParts parts;
  for (const Column& column : columns_) {
    if (!goes_to_disk(column)) continue;
    const StridedBytes at = disk_values(column, block.entries, block.records);
    parts.add({column.memory.data(), at.first, column.bytes_per_row, static_cast<int64_t>(at.stride)});
  }
  return parts;
}

RowStore::RecordBlock RowStore::record_block(std::byte* memory, size_t rows) const {
  std::byte* const records = memory + rows * sizeof(DiskRows::Row);
  const size_t bytes = rows * static_cast<size_t>(disk_->record_bytes());
  return {reinterpret_cast<DiskRows::Row*>(memory), records,
          reinterpret_cast<int32_t*>(records + (bytes + kRecordAlign - 1) / kRecordAlign * kRecordAlign)};
}

RowStore::RecordBlock RowStore::records_on_host(size_t which) {
  const size_t rows = disk_block(),
               bytes = rows * (static_cast<size_t>(disk_->record_bytes()) + kOfNumberAndEntry) + kRecordAlign;
  std::optional<HostBuffer>& memory = records_[which];
  if (!memory) memory.emplace(runtime_.device(), bytes);
  return record_block(memory->data(), rows);
}

void RowStore::for_record_pieces(size_t rows, const RecordBlock& block,
                                 const std::function<void(size_t, size_t, const RecordBlock&)>& body) {
  if (!runtime_.device().is_cuda()) return body(0, rows, block);
  const size_t most =
      (staging_->bytes() - kRecordAlign) / (static_cast<size_t>(disk_->record_bytes()) + kOfNumberAndEntry);
  const RecordBlock piece = record_block(staging_->data(), most);
  for (size_t first = 0; first < rows; first += most) body(first, std::min(most, rows - first), piece);
}

RowStore::RecordBlock RowStore::start_records(size_t which, std::span<const int32_t> rows) {
  Context ctx(runtime_, runtime_.compute_stream());
  const RecordBlock block = records_on_host(which);
  std::copy(rows.begin(), rows.end(), block.numbers);
  const auto record_bytes = static_cast<size_t>(disk_->record_bytes());
  for_record_pieces(rows.size(), block, [&](size_t first, size_t count, const RecordBlock& piece) {
    copy_piece(ctx.stream(), piece.numbers, block.numbers + first, count * sizeof(int32_t));
    ops::gather_records(ctx, record_parts(piece), piece.numbers, static_cast<int64_t>(count));
    copy_piece(ctx.stream(), block.entries + first, piece.entries, count * sizeof(DiskRows::Row));
    copy_piece(ctx.stream(), block.records + first * record_bytes, piece.records, count * record_bytes);
  });
  return block;
}

void RowStore::put_out(std::span<const int32_t> rows, size_t& left) {
  const auto rows_of = [&](size_t first) { return rows.subspan(first, std::min(disk_block(), rows.size() - first)); };
  left = 0;
  if (rows.empty()) return;
  RecordBlock next = start_records(0, rows_of(0));
  for (size_t number = 0; left < rows.size(); ++number) {
    runtime_.compute_stream().synchronize();
    const RecordBlock block = next;
    const std::span<const int32_t> numbers = rows_of(left);
    const std::span<DiskRows::Row> leaving(block.entries, numbers.size());
    for (DiskRows::Row& row : leaving) {  // what no column has
      if (!index_.row_slots) row.slot = 0;
      row.base = row.marks = 0;
    }
    keep_base(numbers, leaving);
    if (const size_t then = left + numbers.size(); then < rows.size())
      next = start_records((number + 1) % 2, rows_of(then));
    disk_->add(leaving, block.records);
    left += numbers.size();
  }
}

void RowStore::take_back(Context& ctx, std::span<const DiskRows::Row> wanted) {
  const RecordBlock block = records_on_host(0);
  std::copy(wanted.begin(), wanted.end(), block.entries);
  disk_->read(wanted, block.records);
  const Progress before = progress();
  const size_t rows = before.rows + wanted.size();
  HCTR_EXPECT(rows <= static_cast<size_t>(capacity_), label_, ": ", before.rows, " rows and ", wanted.size(),
              " of the disk, capacity ", capacity_);
  // Steps may be computed meanwhile: they know nothing of the numbers behind those of their rows.
  const auto first_row = static_cast<int32_t>(before.rows + 1);
  std::iota(block.numbers, block.numbers + wanted.size(), first_row);
  const auto record_bytes = static_cast<size_t>(disk_->record_bytes());
  for_record_pieces(wanted.size(), block, [&](size_t first, size_t count, const RecordBlock& piece) {
    copy_piece(ctx.stream(), piece.numbers, block.numbers + first, count * sizeof(int32_t));
    copy_piece(ctx.stream(), piece.entries, block.entries + first, count * sizeof(DiskRows::Row));
    copy_piece(ctx.stream(), piece.records, block.records + first * record_bytes, count * record_bytes);
    ops::scatter_records(ctx, record_parts(piece), block.numbers[first], static_cast<int64_t>(count));
    ops::index_renumber(ctx, index_, piece.numbers, static_cast<int64_t>(count));
  });
  return_base(ctx.stream(), first_row, wanted);
  ops::index_add_rows(ctx, index_, static_cast<uint32_t>(wanted.size()));
  ctx.stream().synchronize();
  // Behind the steps that are queued, of which each ends with the rows that it knows.
  Context behind(runtime_, runtime_.compute_stream());
  ops::index_finish_rows(behind, index_, static_cast<uint32_t>(rows));
  tell_host({before.batches, static_cast<uint32_t>(rows)});
  disk_->remove(wanted);
}

}  // namespace hctr
