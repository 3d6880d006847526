// Rows on a disk in checkpoints and model files: they are read there, and do not come back for it.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "embedding/row_store.h"

namespace hctr {

void RowStore::save_disk_column(const Column& column, std::span<const DiskRows::Row> rows, int64_t first,
                                std::span<std::byte> to) const {
  const int64_t bytes = column.bytes_per_row, end = first + static_cast<int64_t>(to.size());
  std::vector<std::byte> values;
  for (int64_t row = first / bytes; row * bytes < end; row += static_cast<int64_t>(disk_block())) {
    const auto count = std::min(
        {disk_block(), rows.size() - static_cast<size_t>(row), static_cast<size_t>((end - 1) / bytes - row + 1)});
    values.resize(count * static_cast<size_t>(bytes));
    read_disk_column(column, rows.subspan(static_cast<size_t>(row), count), values.data());
    const int64_t begins = row * bytes, low = std::max(begins, first),
                  high = std::min(begins + static_cast<int64_t>(values.size()), end);
    std::copy(values.begin() + (low - begins), values.begin() + (high - begins), to.begin() + (low - first));
  }
}

void RowStore::read_disk_column(const Column& column, std::span<const DiskRows::Row> rows, std::byte* to) const {
  std::vector<DiskRows::Row> entries(rows.begin(), rows.end());
  std::vector<std::byte> records;
  if (column.in_record()) {
    records.resize(rows.size() * static_cast<size_t>(disk_->record_bytes()));
    disk_->read(rows, records.data());
  }
  const auto bytes = static_cast<size_t>(column.bytes_per_row);
  const StridedBytes from = disk_values(column, entries.data(), records.data());
  for (size_t i = 0; i < rows.size(); ++i) std::memcpy(to + i * bytes, from.first + i * from.stride, bytes);
}

std::vector<std::byte> RowStore::disk_rows(std::string_view name, std::span<const DiskRows::Row> rows) const {
  const auto column = std::find_if(arrays_.columns().begin(), arrays_.columns().end(),
                                   [&](const Column& each) { return each.name == name; });
  HCTR_EXPECT(column != arrays_.columns().end(), arrays_.label(), " has no '", name, "'");
  std::vector<std::byte> values(rows.size() * static_cast<size_t>(column->bytes_per_row));
  read_disk_column(*column, rows, values.data());
  return values;
}

void RowStore::load_disk_rows(const StateReader& from, int64_t first, int64_t rows) {
  std::vector<std::byte> records, values;
  for (int64_t row = first; row <= rows; row += static_cast<int64_t>(disk_block())) {
    std::vector<DiskRows::Row> some(std::min(disk_block(), static_cast<size_t>(rows + 1 - row)));
    records.resize(some.size() * static_cast<size_t>(disk_->record_bytes()));
    for (const Column& column : arrays_.columns()) {
      if (!column.saved) continue;
      const auto bytes = static_cast<size_t>(column.bytes_per_row);
      values.resize(some.size() * bytes);
      from.read(from.at(column.name), (row - 1) * column.bytes_per_row, values);  // arrays start with row 1
      const StridedBytes to = disk_values(column, some.data(), records.data());
      for (size_t i = 0; i < some.size(); ++i) std::memcpy(to.first + i * to.stride, values.data() + i * bytes, bytes);
    }
    for (size_t i = 0; i < some.size() && !ranges_.empty(); ++i) {
      const ops::RowOwner owner = ranges_.index().owner(row + static_cast<int64_t>(i));
      some[i].key = owner.key;
      some[i].slot = owner.slot;
      some[i].base = static_cast<uint32_t>(row + static_cast<int64_t>(i)) & DiskRows::kMostBaseRows;
    }
    disk_->add(some, records.data());
  }
}

}  // namespace hctr
