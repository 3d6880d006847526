#include "formats/parquet/parquet_file.h"

#include <dlfcn.h>

#include "core/base/expect.h"
#include "core/base/plugin_file.h"
#include "formats/io/memory_source.h"
#include "formats/parquet/memory_table.h"
#include "formats/parquet/parquet_partitions.h"

namespace hctr {
namespace {

const ParquetPlugin& load() {
  std::error_code none;
  const fs::path beside = plugin_file(kParquetPluginFile);
  const bool there = fs::exists(beside, none);
  void* library = ::dlopen(there ? beside.c_str() : kParquetPluginFile, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string why = ::dlerror();
    throw Error(Kind::io,
                there ? cat("Parquet data needs '", beside.string(), "', which cannot be loaded: ", why,
                            "; if Arrow was removed or replaced, configure and build again")
                      : cat("Parquet data needs ", kParquetPluginFile, " next to the program, which is missing (", why,
                            "). Was the program copied without it? Otherwise Arrow C++ was not found when this was "
                            "built: install it (pip install pyarrow, or the packages libarrow-dev and libparquet-dev), "
                            "then configure and build again; CMake prints what it found after \"Parquet:\""));
  }
  const auto entry = reinterpret_cast<const ParquetPlugin* (*)()>(::dlsym(library, kParquetPluginEntry));
  if (!entry || entry()->version != kParquetPlugin)
    throw Error(Kind::io, cat("'", beside.string(), "' belongs to another version of this program; build it again"));
  return *entry();
}

}  // namespace

const ParquetPlugin& parquet_plugin() {
  static const ParquetPlugin& plugin = load();
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
  open_to_read(path, "data file");  // says why not, in the words of all formats
  ParquetFile* file = nullptr;
  if (const char* problem = parquet_plugin().open(path.c_str(), kParquetPieceRows, &file))
    throw Error(Kind::data, cat("'", path.string(), "' is not a complete Parquet file: ", problem));
  return with_partitions(std::shared_ptr<ParquetFile>(file), path);
}

}  // namespace hctr
