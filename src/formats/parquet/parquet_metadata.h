// _metadata.json in a folder of Parquet files (HugeCTR, NVTabular): names the columns of labels, dense values and
// slots.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

inline constexpr const char* kParquetMetadata = "_metadata.json";

struct ParquetMetadata {
  struct Column {
    std::string name;
    int64_t index = -1;  ///< column index in the files; -1: not stated
  };
  fs::path path;
  std::map<std::string, int64_t> rows;  ///< number of rows by file name (without folder)
  std::vector<Column> labels, conts, cats;
};

/// Reads a folder's _metadata.json; empty if there is none. Errors: Error(config) for invalid JSON; Error(data) naming
/// an unexpected value.
std::optional<ParquetMetadata> read_parquet_metadata(const fs::path& folder);

/// Writes the metadata to metadata.path.
void write_parquet_metadata(const ParquetMetadata&);

}  // namespace hctr
