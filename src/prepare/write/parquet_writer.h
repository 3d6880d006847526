// Writing Parquet data sets: records as they are encoded for Norm files, turned into columns.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/files.h"
#include "data/parquet/parquet_metadata.h"
#include "data/parquet/parquet_plugin.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

/// The columns of a set. Label and dense values are float32, keys uint32 or int64.
struct ParquetStyle {
  NormStyle record;  ///< without check sums
  std::vector<std::string> labels, dense, slots;
  std::vector<bool> lists;  ///< [slots] whether a row may have other than one key
  int threads = 1;          ///< that encode columns; the bytes are the same for any number
};

/// One file. It has no name before commit(). Errors: Error(io); Error(bug) for two keys where there is no list.
class ParquetFileWriter {
 public:
  ParquetFileWriter(fs::path, const ParquetStyle&);
  ~ParquetFileWriter();
  ParquetFileWriter(const ParquetFileWriter&) = delete;

  /// Appends records that append_norm_record() encoded. They become a row group with others.
  void append(std::span<const std::byte> bytes, int64_t records);
  int64_t records() const;
  const fs::path& path() const;
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A folder with Parquet files, their _metadata.json, and a list. The list comes last, so that nothing names half a
/// set.
class ParquetSetWriter {
 public:
  /// `name` makes the name of file n = 0, 1, ... in the folder. Removes the folder's _metadata.json and the list of an
  /// earlier set.
  ParquetSetWriter(fs::path folder, fs::path list, ParquetStyle, std::function<std::string(int64_t n)> name);

  /// Starts the next file.
  void next_file();
  void append(std::span<const std::byte> bytes, int64_t records) { open_->append(bytes, records); }
  /// Of the file that is open; 0 where none is.
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
