// Writes Parquet data sets. Records arrive in Norm encoding and are converted to columns.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/base/files.h"
#include "formats/parquet/parquet_metadata.h"
#include "formats/parquet/parquet_plugin.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

/// The columns of a set. Labels and dense values are float32, keys are uint32 or int64.
struct ParquetStyle {
  NormStyle record;  ///< without checksums
  std::vector<std::string> labels, dense, slots;
  std::vector<bool> lists;  ///< [slots] whether rows may have a number of keys other than one
  int threads = 1;          ///< number of threads that encode columns; does not affect the output
};

/// Writes one file, which gets its final name in commit(). Errors: Error(io); Error(bug) for several keys in a slot
/// that is not a list.
class ParquetFileWriter {
 public:
  ParquetFileWriter(fs::path, const ParquetStyle&);
  ~ParquetFileWriter();
  ParquetFileWriter(const ParquetFileWriter&) = delete;

  /// Appends records that append_norm_record() encoded, and collects them in row groups.
  void append(std::span<const std::byte> bytes, int64_t records);
  int64_t records() const;
  const fs::path& path() const;
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a folder of Parquet files with _metadata.json and a list. The list is written last, so that it never names
/// files of an incomplete set.
class ParquetSetWriter {
 public:
  /// `name`: returns the name of file n = 0, 1, ... in the folder. The constructor removes _metadata.json and the list
  /// of an earlier set.
  ParquetSetWriter(fs::path folder, fs::path list, ParquetStyle, std::function<std::string(int64_t n)> name);

  /// Starts the next file.
  void next_file();
  void append(std::span<const std::byte> bytes, int64_t records) { open_->append(bytes, records); }
  /// The number of records in the open file; 0 without an open file.
  int64_t records() const { return open_ ? open_->records() : 0; }
  /// Finishes the set and returns its files.
  std::vector<fs::path> finish();

 private:
  void finish_file();

  fs::path folder_, list_;
  ParquetStyle style_;
  std::function<std::string(int64_t)> name_;
  std::unique_ptr<ParquetFileWriter> open_;
  std::vector<fs::path> files_;
  ParquetMetadata metadata_;
};

}  // namespace hctr
