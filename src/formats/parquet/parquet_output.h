// A Parquet file that is being written: rows go through the plug-in, bytes to an AtomicFile.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Default rows of a row group.
inline constexpr int64_t kParquetGroupRows = 128 << 10;

class ParquetOutput {
 public:
  /// `file` outlives it, and is completed by the caller. `threads`: that encode columns; the bytes do not depend on
  /// them. Errors of all members: Error(io).
  ParquetOutput(AtomicFile& file, const std::vector<ParquetField>& fields, int64_t threads = 1);
  ParquetOutput(const ParquetOutput&) = delete;

  /// A row group: the values of each field.
  void write(const std::vector<ParquetValues>& columns, int64_t rows);
  /// After the last row group.
  void finish();

 private:
  bool put(const void* bytes, int64_t count);
  void expect_done(const char* problem);

  AtomicFile& file_;
  std::exception_ptr failure_;
  std::unique_ptr<ParquetWriter> writer_;  // declared last: its destructor may write
};

}  // namespace hctr
