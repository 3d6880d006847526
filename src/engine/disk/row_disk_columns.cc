// Reads column values of rows on disk for checkpoints and model files, without moving rows to memory.
#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "engine/disk/disk_columns.h"
#include "engine/disk/row_disk_tier.h"
#include "formats/checkpoint/state_reader.h"

namespace hctr {

RowDiskTier::StridedBytes RowDiskTier::values_of(const RowColumn& column, DiskRows::Row* rows,
                                                 std::byte* records) const {
  if (const auto at = place_in_entry(column)) return {reinterpret_cast<std::byte*>(rows) + *at, sizeof(DiskRows::Row)};
  return {records + offset_in_record(column), static_cast<size_t>(disk_->record_bytes())};
}

size_t RowDiskTier::offset_in_record(const RowColumn& column) const {
  int64_t at = 0;
  for (const RowColumn& before : arrays_.columns()) {
    if (before.name == column.name) break;
    if (in_record(before)) at += before.bytes_per_row;
  }
  return static_cast<size_t>(at);
}

void RowDiskTier::read(const RowColumn& column, std::span<const DiskRows::Row> rows, std::byte* to) const {
  std::vector<DiskRows::Row> entries(rows.begin(), rows.end());
  std::vector<std::byte> records;
  if (in_record(column)) {
    records.resize(rows.size() * static_cast<size_t>(disk_->record_bytes()));
    disk_->read(rows, records.data());
  }
  const auto bytes = static_cast<size_t>(column.bytes_per_row);
  const StridedBytes from = values_of(column, entries.data(), records.data());
  for (size_t i = 0; i < rows.size(); ++i) std::memcpy(to + i * bytes, from.first + i * from.stride, bytes);
}

std::vector<std::byte> RowDiskTier::values(std::string_view name, std::span<const DiskRows::Row> rows) const {
  const RowColumn& column = arrays_.column(name);
  std::vector<std::byte> values(rows.size() * static_cast<size_t>(column.bytes_per_row));
  read(column, rows, values.data());
  return values;
}

void RowDiskTier::read(const RowColumn& column, std::span<const DiskRows::Row> rows, int64_t first,
                       std::span<std::byte> to) const {
  const int64_t bytes = column.bytes_per_row, end = first + static_cast<int64_t>(to.size());
  std::vector<std::byte> values;
  for (int64_t row = first / bytes; row * bytes < end; row += static_cast<int64_t>(block_rows())) {
    const auto count = std::min(
        {block_rows(), rows.size() - static_cast<size_t>(row), static_cast<size_t>((end - 1) / bytes - row + 1)});
    values.resize(count * static_cast<size_t>(bytes));
    read(column, rows.subspan(static_cast<size_t>(row), count), values.data());
    const int64_t begins = row * bytes, low = std::max(begins, first),
                  high = std::min(begins + static_cast<int64_t>(values.size()), end);
    std::copy(values.begin() + (low - begins), values.begin() + (high - begins), to.begin() + (low - first));
  }
}

void RowDiskTier::load(const StateReader& from, int64_t first, int64_t last,
                       const std::function<ops::RowOwner(int64_t)>& owner_of) {
  std::vector<std::byte> records, values;
  for (int64_t row = first; row <= last; row += static_cast<int64_t>(block_rows())) {
    std::vector<DiskRows::Row> some(std::min(block_rows(), static_cast<size_t>(last + 1 - row)));
    records.resize(some.size() * static_cast<size_t>(disk_->record_bytes()));
    for (const RowColumn& column : arrays_.columns()) {
      if (!column.saved) continue;
      const auto bytes = static_cast<size_t>(column.bytes_per_row);
      values.resize(some.size() * bytes);
      from.read(from.at(column.name), (row - 1) * column.bytes_per_row, values);  // saved arrays start with row 1
      const StridedBytes to = values_of(column, some.data(), records.data());
      for (size_t i = 0; i < some.size(); ++i) std::memcpy(to.first + i * to.stride, values.data() + i * bytes, bytes);
    }
    for (size_t i = 0; i < some.size() && owner_of; ++i) {
      const ops::RowOwner owner = owner_of(row + static_cast<int64_t>(i));
      some[i].key = owner.key;
      some[i].slot = owner.slot;
      some[i].base = static_cast<uint32_t>(row + static_cast<int64_t>(i)) & DiskRows::kMostBaseRows;
    }
    disk_->add(some, records.data());
  }
}

}  // namespace hctr
