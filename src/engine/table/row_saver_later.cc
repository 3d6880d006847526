// Checkpoints of rows on disk that are written while training continues. Rows in memory are copied immediately; a
// thread reads the rows on disk later.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/expect.h"
#include "engine/disk/disk_columns.h"
#include "engine/table/row_saver.h"

namespace hctr {
namespace {

/// The rows of a checkpoint, in memory and on disk, in checkpoint order.
struct RowsForLater {
  struct Values {  // the values of one column
    size_t bytes;
    bool in_record;                    // false: the value is in DiskRows::Row
    size_t at;                         // byte offset in the record or in DiskRows::Row
    std::vector<std::byte> in_memory;  // copies of the rows in memory
  };
  std::shared_ptr<DiskSnapshot> snapshot;
  std::vector<int64_t> order;  // row numbers, or -1 - (index in the snapshot); empty: the snapshot in order
  std::vector<Values> columns;
  size_t from_memory = 0;  // number of rows in memory that have been consumed
  bool needs_records = false;

  void read(int64_t first, int64_t count, std::span<std::byte* const> to);
};

void RowsForLater::read(int64_t first, int64_t count, std::span<std::byte* const> to) {
  std::vector<DiskRows::Row> copied;
  std::span<const DiskRows::Row> on_disk;
  if (order.empty()) {
    on_disk = snapshot->rows().subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  } else {
    for (int64_t i = first; i < first + count; ++i)
      if (const int64_t row = order[static_cast<size_t>(i)]; row < 0)
        copied.push_back(snapshot->rows()[static_cast<size_t>(-1 - row)]);
    on_disk = copied;
  }
  const auto record_bytes = static_cast<size_t>(snapshot->record_bytes());
  std::vector<std::byte> records(needs_records ? on_disk.size() * record_bytes : 0);
  if (needs_records) snapshot->read(on_disk, records.data());
  const auto* const rows = reinterpret_cast<const std::byte*>(on_disk.data());
  for (size_t c = 0; c < columns.size(); ++c) {
    const Values& column = columns[c];
    const std::byte* const disk = column.in_record ? records.data() : rows;  // null if no row is on disk
    const std::byte* memory = column.in_memory.data() + from_memory * column.bytes;
    const size_t stride = column.in_record ? record_bytes : sizeof(DiskRows::Row);
    size_t at = column.at;  // offset of the next row on disk
    for (int64_t i = 0; i < count; ++i) {
      const bool is_there = !order.empty() && order[static_cast<size_t>(first + i)] > 0;
      std::byte* const row = to[c] + static_cast<size_t>(i) * column.bytes;
      std::memcpy(row, is_there ? memory : disk + at, column.bytes);
      if (is_there)
        memory += column.bytes;
      else
        at += stride;
    }
  }
  from_memory += static_cast<size_t>(count) - on_disk.size();
}

}  // namespace

bool RowSaver::fits_later(int64_t rows_in_memory, int64_t rows) const {
  int64_t bytes = rows * static_cast<int64_t>(sizeof(int64_t));
  for (const RowColumn& column : arrays_.columns())
    if (column.saved) bytes += rows_in_memory * column.bytes_per_row;
  if (bytes > to_.later()->memory) {
    to_.later()->refused = cat(arrays_.label(), ": ", bytes, " bytes for a copy of the rows in memory exceed the ",
                               to_.later()->memory, " bytes available for the copy");
    return false;
  }
  to_.later()->memory -= bytes;
  return true;
}

void RowSaver::leave_for_later(std::vector<int64_t> order, const std::vector<LaterColumn>& columns) const {
  const std::shared_ptr<DiskSnapshot>& snapshot = rows_.snapshot;
  if (columns.empty()) return;
  auto rows = std::make_shared<RowsForLater>();
  rows->snapshot = snapshot;
  LaterRows later;
  later.rows = static_cast<int64_t>(order.empty() ? snapshot->rows().size() : order.size());
  std::vector<int32_t> numbers;
  for (const int64_t row : order)
    if (row > 0) numbers.push_back(static_cast<int32_t>(row));
  for (const auto& [column, part] : columns) {
    const auto bytes = static_cast<size_t>(column->bytes_per_row);
    std::vector<std::byte> in_memory(numbers.size() * bytes);
    arrays_.copy_out(*column, numbers, in_memory.data());
    const bool of_record = in_record(*column);
    rows->needs_records = rows->needs_records || of_record;
    rows->columns.push_back({bytes, of_record, of_record ? tier_->offset_in_record(*column) : *place_in_entry(*column),
                             std::move(in_memory)});
    later.parts.push_back(part);
  }
  rows->order = std::move(order);
  later.read = [rows](int64_t first, int64_t count, std::span<std::byte* const> parts) {
    rows->read(first, count, parts);
  };
  later.waited = [use = snapshot->use()] { return use->waited(); };
  to_.later()->rows.push_back(std::move(later));
}

}  // namespace hctr
