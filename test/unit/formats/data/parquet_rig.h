// A fixture for tests that write a Parquet file and read its rows as samples.
#pragma once

#include "formats/parquet/parquet_set.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {

inline ParquetOptions& parquet_of(DataSection& section) { return section.options.edit<ParquetOptions>(); }

/// Writes Parquet files and reads them as samples.
struct ParquetRig : ::testing::Test {
  void SetUp() override { HCTR_SKIP_WITHOUT_PARQUET(); }

  /// Returns a section that names all of its columns: label "y", dense columns "d0"... and slots "s0"....
  DataSection named(int64_t dense, std::vector<SparseInput> sparse) {
    DataSection section = section_of(1, dense, std::move(sparse));
    section.format = kParquetFormat;
    parquet_of(section).labels = {"y"};
    if (dense > 0) parquet_of(section).dense.emplace_back();
    for (int64_t i = 0; i < dense; ++i) parquet_of(section).dense[0].columns.push_back(cat("d", i));
    parquet_of(section).slots.emplace_back();
    for (int64_t i = 0; i < section.slots(); ++i) parquet_of(section).slots[0].columns.push_back(cat("s", i));
    return section;
  }
  DataSection one_slot() { return named(1, {input_of("s", 1, 3, 3)}); }

  /// Writes a file with columns y, d0 and s0. `slot`: the column s0, which determines the number of rows.
  void write(const Column& slot, const std::optional<Column>& dense = {}, int64_t rows_per_group = 1 << 20) {
    const auto rows = static_cast<size_t>(slot.rows());
    write_parquet(file,
                  {numbers("y", ParquetType::f32, std::vector<float>(rows, 1)),
                   dense ? *dense : numbers("d0", ParquetType::f32, std::vector<float>(rows, 0.5f)), slot},
                  rows_per_group);
  }
  /// Returns the message of the error that reading `file` throws.
  std::string error(const DataSection& section, KeyWidth width = KeyWidth::detect) {
    return message_of(
        [&] { Rig(section, file, {.batch = 100, .workers = 2, .repeat = false, .key_width = width}).all(); });
  }
  /// Returns the first batch of `file`.
  ReadBatch read(const DataSection& section, int64_t batch, KeyWidth width = KeyWidth::detect) {
    Rig rig(section, file, {.batch = batch, .repeat = false, .key_width = width});
    return *rig.next();
  }

  Folder folder;
  const fs::path file = folder / "part.parquet";
};

}  // namespace hctr::data_test
