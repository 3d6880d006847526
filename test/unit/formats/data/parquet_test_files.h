// Writes Parquet files with columns of any type for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "core/base/expect.h"
#include "formats/parquet/parquet_file.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {

/// One column of a file with the values of all rows.
struct Column {
  std::string name;
  ParquetType type;
  bool list = false;
  std::vector<uint8_t> valid;               // [rows]; empty: all rows are valid
  std::vector<std::vector<uint8_t>> bytes;  // [rows]: the bytes of the items of each row
  std::vector<int32_t> items;               // [rows] of a list column: the number of items

  int64_t rows() const { return static_cast<int64_t>(bytes.size()); }
};

template <class T>
Column numbers(const std::string& name, ParquetType type, const std::vector<T>& values,
               const std::vector<int64_t>& nulls = {}) {
  Column column{name, type, false, {}, {}, {}};
  for (const T& value : values) {
    auto& bytes = column.bytes.emplace_back(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
  }
  if (!nulls.empty()) column.valid.assign(values.size(), 1);
  for (const int64_t row : nulls) column.valid[static_cast<size_t>(row)] = 0;
  return column;
}

inline Column texts(const std::string& name, const std::vector<std::optional<std::string>>& values) {
  Column column{name, ParquetType::text, false, {}, {}, {}};
  for (const auto& value : values) {
    const std::string text = value.value_or("");
    column.bytes.emplace_back(text.begin(), text.end());
    column.valid.push_back(value.has_value());
  }
  return column;
}

template <class T>
Column lists(const std::string& name, ParquetType type, const std::vector<std::vector<T>>& values,
             const std::vector<int64_t>& nulls = {}) {
  Column column{name, type, true, {}, {}, {}};
  for (const auto& list : values) {
    auto& bytes = column.bytes.emplace_back(list.size() * sizeof(T));
    if (!list.empty()) std::memcpy(bytes.data(), list.data(), bytes.size());
    column.items.push_back(static_cast<int32_t>(list.size()));
  }
  if (!nulls.empty()) column.valid.assign(values.size(), 1);
  for (const int64_t row : nulls) column.valid[static_cast<size_t>(row)] = 0;
  return column;
}

/// The values of rows [begin, end) of a column. Owns their memory.
struct Slice {
  Slice(const Column& column, int64_t begin, int64_t end) {
    values.rows = end - begin;
    list.push_back(0);
    text.push_back(0);
    for (int64_t r = begin; r < end; ++r) {
      const auto row = static_cast<size_t>(r);
      bytes.insert(bytes.end(), column.bytes[row].begin(), column.bytes[row].end());
      text.push_back(static_cast<int32_t>(bytes.size()));
      if (column.list) list.push_back(list.back() + column.items[row]);
      const auto at = static_cast<size_t>(r - begin);
      if (at % 8 == 0) valid.push_back(0);
      if (column.valid.empty() || column.valid[row]) valid.back() |= static_cast<uint8_t>(1 << at % 8);
      if (column.type == ParquetType::boolean) {
        if (at % 8 == 0) bits.push_back(0);
        if (column.bytes[row][0]) bits.back() |= static_cast<uint8_t>(1 << at % 8);
      }
    }
    values.values = column.type == ParquetType::boolean ? bits.data() : bytes.data();
    if (column.list) values.list = list.data();
    if (column.type == ParquetType::text) values.text = text.data();
    if (!column.valid.empty()) values.valid_rows = valid.data();
  }
  Slice(const Slice&) = delete;
  ParquetValues values;
  std::vector<uint8_t> bytes{}, bits{}, valid{};
  std::vector<int32_t> list{}, text{};
};

inline void write_parquet(const fs::path& path, const std::vector<Column>& columns, int64_t rows_per_group = 1 << 20) {
  std::vector<ParquetField> fields;
  for (const Column& column : columns) fields.push_back({column.name.c_str(), column.type, column.list, "", true});
  std::string bytes;
  const ParquetSink sink{&bytes, [](void* self, const void* from, int64_t count) {
                           static_cast<std::string*>(self)->append(static_cast<const char*>(from),
                                                                   static_cast<size_t>(count));
                           return true;
                         }};
  ParquetWriter* made = nullptr;
  const char* problem = parquet_plugin().create(fields.data(), static_cast<int64_t>(fields.size()), 1, sink, &made);
  ASSERT_EQ(problem, nullptr) << problem;
  const std::unique_ptr<ParquetWriter> writer(made);
  for (int64_t begin = 0; begin < columns[0].rows(); begin += rows_per_group) {
    const int64_t end = std::min(begin + rows_per_group, columns[0].rows());
    std::vector<std::unique_ptr<Slice>> slices;
    std::vector<ParquetValues> values;
    for (const Column& column : columns)
      values.push_back(slices.emplace_back(std::make_unique<Slice>(column, begin, end))->values);
    problem = writer->write(values.data(), end - begin);
    ASSERT_EQ(problem, nullptr) << problem;
  }
  problem = writer->finish();
  ASSERT_EQ(problem, nullptr) << problem;
  write_text(path, bytes);
}

}  // namespace hctr::data_test

/// Skips the test with a message if the build has no Arrow.
#define HCTR_SKIP_WITHOUT_PARQUET() \
  if (const std::string why_ = ::hctr::why_no_parquet(); !why_.empty()) GTEST_SKIP() << why_
