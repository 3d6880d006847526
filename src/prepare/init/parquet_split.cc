#include "prepare/init/parquet_split.h"

#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_values.h"

namespace hctr {
namespace {

constexpr size_t kMostColumnBytes = 256 << 20;  // text offsets have 32 bits, so a column buffer must stay smaller

void push_bit(std::vector<uint8_t>& bits, int64_t at, bool bit) {
  if (at % 8 == 0) bits.push_back(0);
  bits.back() = static_cast<uint8_t>(bits.back() | (bit << (at % 8)));
}

}  // namespace

void ParquetColumnRows::clear() {
  rows_ = items_ = 0;
  valid_rows_.clear();
  valid_items_.clear();
  values_.clear();
  list_.assign(1, 0);
  text_.assign(1, 0);
}

void ParquetColumnRows::add(const ParquetValues& values, int64_t row) {
  const bool valid = is_valid(values, row);
  push_bit(valid_rows_, rows_++, valid);
  if (!field_.list) return add_item(values, row, valid);
  if (valid)
    for (int32_t i = values.list[row]; i < values.list[row + 1]; ++i) {
      const bool valid_item = is_valid_item(values, i);
      push_bit(valid_items_, items_, valid_item);
      add_item(values, i, valid_item);
    }
  list_.push_back(static_cast<int32_t>(items_));
}

void ParquetColumnRows::add_item(const ParquetValues& values, int64_t item, bool valid) {
  if (field_.type == ParquetType::boolean) {
    push_bit(values_, items_, valid && number_at(field_.type, values, item) != 0);
  } else if (field_.type == ParquetType::text) {
    const std::string_view text = valid ? text_at(values, item) : std::string_view();
    values_.insert(values_.end(), text.begin(), text.end());
    text_.push_back(static_cast<int32_t>(values_.size()));
  } else {
    with_values(field_.type, values.values, [&](const auto* from) {
      if (!valid) return values_.resize(values_.size() + sizeof *from);
      const auto* bytes = reinterpret_cast<const uint8_t*>(from + item);
      values_.insert(values_.end(), bytes, bytes + sizeof *from);
    });
  }
  ++items_;
}

ParquetValues ParquetColumnRows::values() const {
  return {.rows = rows_,
          .valid_rows = valid_rows_.data(),
          .list = field_.list ? list_.data() : nullptr,
          .valid_items = field_.list ? valid_items_.data() : nullptr,
          .values = values_.data(),
          .text = field_.type == ParquetType::text ? text_.data() : nullptr};
}

ParquetSplitWriter::ParquetSplitWriter(AtomicFile& file, const std::vector<ParquetField>& fields) {
  names_.reserve(fields.size());  // prevents reallocation: the fields keep pointers to the names
  std::vector<ParquetField> written;
  for (const ParquetField& field : fields) {
    names_.emplace_back(field.name);
    written.push_back({names_.back().c_str(), field.type, field.list, "", true});
    columns_.emplace_back(written.back());
  }
  output_ = std::make_unique<ParquetOutput>(file, written);
}

void ParquetSplitWriter::add(const std::vector<ParquetValues>& columns, int64_t row) {
  bool full = ++rows_ == kParquetGroupRows;
  for (size_t c = 0; c < columns_.size(); ++c) {
    columns_[c].add(columns[c], row);
    full = full || columns_[c].bytes() > kMostColumnBytes;
  }
  if (full) write_group();
}

void ParquetSplitWriter::write_group() {
  if (rows_ == 0) return;
  std::vector<ParquetValues> values;
  for (const ParquetColumnRows& column : columns_) values.push_back(column.values());
  output_->write(values, rows_);
  for (ParquetColumnRows& column : columns_) column.clear();
  rows_ = 0;
}

void ParquetSplitWriter::finish() {
  write_group();
  output_->finish();
}

}  // namespace hctr
