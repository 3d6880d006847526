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

/// A table of batches of rows, of which it takes possession: those of the caller are released, by any thread, when
/// nobody reads the table any more. Errors: Error(usage) for a schema that is no table, or batches that do not fit it.
std::shared_ptr<MemoryTable> memory_table(ArrowSchema&, std::vector<ArrowArray>& batches);
/// The batches of a stream. Errors: also Error(data) with what the stream says.
std::shared_ptr<MemoryTable> memory_table(ArrowArrayStream&);

/// Gives the table a name that `source` may have in this process: "memory:/1".
std::string add_memory_source(std::shared_ptr<MemoryTable>);
/// Whoever reads the table goes on; nobody else finds it. An unknown name is no error.
void remove_memory_source(const std::string& name);
/// Errors: Error(io) where there is none.
std::shared_ptr<MemoryTable> memory_source(const fs::path& name);

}  // namespace hctr
