// In-memory Arrow tables with the interface of Parquet files. The map from names to tables is process-wide, because a
// config may use a table's name wherever it may use a file's name. Owners of tables, such as hctr_frame, add and remove
// their own entries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "formats/parquet/arrow_c_data.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// An in-memory table as a ParquetFile. Each batch of rows is a row group. Numbers and texts are not copied.
class MemoryTable : public ParquetFile {
 public:
  /// Frees memory that the table allocated for converted values.
  static void drop(void* owner);
  /// Approximate size of all rows in bytes.
  virtual int64_t bytes() const = 0;
};

/// Creates a table from batches of rows. The table takes ownership of schema and batches, and releases them after its
/// last reader, in any thread. Errors: Error(usage) if the schema is not a table, or the batches contradict the schema.
std::shared_ptr<MemoryTable> memory_table(ArrowSchema&, std::vector<ArrowArray>& batches);
/// Creates a table from the batches of a stream. Errors: also Error(data) with the stream's message.
std::shared_ptr<MemoryTable> memory_table(ArrowArrayStream&);

/// Registers the table and returns its name, such as "memory:/1", which may be used as `source` in this process.
std::string add_memory_source(std::shared_ptr<MemoryTable>);
/// Unregisters a table. Existing readers keep the table alive. Unknown names are ignored.
void remove_memory_source(const std::string& name);
/// The registered table. Errors: Error(io) for an unknown name.
std::shared_ptr<MemoryTable> memory_source(const fs::path& name);

}  // namespace hctr
