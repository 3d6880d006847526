// Writes a Parquet file: the plug-in encodes rows, and an AtomicFile receives the bytes.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Default number of rows per row group.
inline constexpr int64_t kParquetGroupRows = 128 << 10;

class ParquetOutput {
 public:
  /// `file` must outlive this object; the caller commits it. `threads`: number of encoding threads; the written bytes
  /// do not depend on it. Errors of all members: Error(io).
  ParquetOutput(AtomicFile& file, const std::vector<ParquetField>& fields, int64_t threads = 1);
  ParquetOutput(const ParquetOutput&) = delete;

  /// Writes a row group. `columns`: the values of each field.
  void write(const std::vector<ParquetValues>& columns, int64_t rows);
  /// Completes the file after the last row group.
  void finish();

 private:
  bool put(const void* bytes, int64_t count);
  void expect_done(const char* problem);

  AtomicFile& file_;
  std::exception_ptr failure_;
  std::unique_ptr<ParquetWriter> writer_;  // declared last, because its destructor may write
};

}  // namespace hctr
