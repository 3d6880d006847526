#include "formats/parquet/parquet_file.h"

#include "core/base/expect.h"
#include "core/base/plugin_file.h"
#include "formats/io/memory_source.h"
#include "formats/parquet/memory_table.h"
#include "formats/parquet/parquet_partitions.h"

namespace hctr {

const ParquetPlugin& parquet_plugin() {
  static const ParquetPlugin& plugin =
      load_plugin<ParquetPlugin>({"Parquet data", kParquetPluginFile, kParquetPluginEntry, kParquetPlugin, "Arrow C++",
                                  "pyarrow (by pip), or libarrow-dev and libparquet-dev", "Parquet"});
  return plugin;
}

std::string why_no_parquet() try {
  parquet_plugin();
  return "";
} catch (const Error& error) {
  return error.what();
}

void (*drop_of(const ParquetFile& file))(void*) {
  return dynamic_cast<const MemoryTable*>(&file) ? &MemoryTable::drop : parquet_plugin().drop;
}

std::shared_ptr<ParquetFile> open_parquet(const fs::path& path) {
  if (is_in_memory(path.string())) return memory_source(path);
  open_to_read(path, "data file");  // reports a missing file with the message that all formats use
  ParquetFile* file = nullptr;
  if (const char* problem = parquet_plugin().open(path.c_str(), kParquetPieceRows, &file))
    throw Error(Kind::data, cat("'", path.string(), "' is not a complete Parquet file: ", problem));
  return with_partitions(std::shared_ptr<ParquetFile>(file), path);
}

}  // namespace hctr
