// Tables in memory, in Arrow's layout, that are read as Parquet files are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "formats/parquet/arrow_c_data.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// A table in memory as a file. Each batch of rows is a row group. Numbers and texts are read where they lie.
class MemoryTable : public ParquetFile {
 public:
  /// Memory that pieces need for themselves.
  static void drop(void* owner);
  /// Bytes of all rows, about.
  virtual int64_t bytes() const = 0;
};

/// A table of batches of rows. It takes ownership of the caller's batches, and releases them, in any thread, after the
/// last reader. Errors: Error(usage) for a schema that is not a table, or batches that do not fit it.
std::shared_ptr<MemoryTable> memory_table(ArrowSchema&, std::vector<ArrowArray>& batches);
/// The batches of a stream. Errors: also Error(data) with the stream's message.
std::shared_ptr<MemoryTable> memory_table(ArrowArrayStream&);

/// Gives the table a name that `source` may have in this process: "memory:/1".
std::string add_memory_source(std::shared_ptr<MemoryTable>);
/// Current readers keep the table; it can no longer be found. Unknown names are ignored.
void remove_memory_source(const std::string& name);
/// Errors: Error(io) for an unknown name.
std::shared_ptr<MemoryTable> memory_source(const fs::path& name);

}  // namespace hctr
