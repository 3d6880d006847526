#include "export/parquet_arrays.h"

#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "formats/parquet/parquet_output.h"

namespace hctr {
namespace {

constexpr int64_t kGroupNumbers = int64_t{1} << 24;  // float32 elements per row group: 64 MiB

}  // namespace

void write_parquet_arrays(FileSet& set, const fs::path& path, const std::vector<StoredArray>& arrays) {
  AtomicFile& file = set.add(path);
  ParquetOutput output(file, {{"name", ParquetType::text, false, ""},
                              {"shape", ParquetType::i64, true, ""},
                              {"values", ParquetType::f32, true, ""}});
  for (const StoredArray& array : arrays) {
    if (array.elements() > std::numeric_limits<int32_t>::max())
      throw Error(Kind::usage, cat("'", array.name, "' has ", array.elements(),
                                   " numbers, more than a Parquet list can contain; export as npz or safetensors"));
    std::vector<float> values(static_cast<size_t>(array.elements()));
    size_t at = 0;
    array.write([&](std::span<const std::byte> bytes) {
      std::memcpy(reinterpret_cast<std::byte*>(values.data()) + at, bytes.data(), bytes.size());
      at += bytes.size();
    });
    const int32_t name[] = {0, static_cast<int32_t>(array.name.size())},
                  shape[] = {0, static_cast<int32_t>(array.dims.size())},
                  list[] = {0, static_cast<int32_t>(values.size())};
    output.write({ParquetValues{.rows = 1, .values = array.name.data(), .text = name},
                  ParquetValues{.rows = 1, .list = shape, .values = array.dims.data()},
                  ParquetValues{.rows = 1, .list = list, .values = values.data()}},
                 1);
  }
  output.finish();
  file.finish();
}

void write_parquet_table(FileSet& set, const fs::path& path, const TableArrays& table) {
  AtomicFile& file = set.add(path);
  std::vector<ParquetField> fields = {{"key", ParquetType::i64, false, ""}};
  if (table.by_slot) fields.push_back({"slot", ParquetType::i64, false, ""});
  fields.push_back({"vector", ParquetType::f32, true, ""});
  ParquetOutput output(file, fields);
  const int64_t most = std::max<int64_t>(1, kGroupNumbers / table.dim);
  std::vector<float> vectors;
  std::vector<int32_t> list;
  int64_t written = 0;
  const auto write = [&](int64_t rows) {
    if (rows == 0) return;
    list.resize(static_cast<size_t>(rows) + 1);
    for (size_t r = 0; r < list.size(); ++r) list[r] = static_cast<int32_t>(static_cast<int64_t>(r) * table.dim);
    std::vector<ParquetValues> columns = {ParquetValues{.rows = rows, .values = table.keys.data() + written}};
    if (table.by_slot) columns.push_back(ParquetValues{.rows = rows, .values = table.slot_of.data() + written});
    columns.push_back(ParquetValues{.rows = rows, .list = list.data(), .values = vectors.data()});
    output.write(columns, rows);
    written += rows;
    vectors.erase(vectors.begin(), vectors.begin() + rows * table.dim);
  };
  const auto waiting = [&] { return static_cast<int64_t>(vectors.size()) / table.dim; };
  table.each_block([&](std::span<const float> block) {
    vectors.insert(vectors.end(), block.begin(), block.end());
    if (waiting() >= most) write(waiting());
  });
  write(waiting());
  output.finish();
  file.finish();
}

}  // namespace hctr
