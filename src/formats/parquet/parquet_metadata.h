// _metadata.json, in the folder of Parquet files: which columns are labels, dense values and slots (HugeCTR,
// NVTabular).
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
    int64_t index = -1;  ///< index of the column in the files; -1: not stated
  };
  fs::path path;
  std::map<std::string, int64_t> rows;  ///< rows by file name without folders
  std::vector<Column> labels, conts, cats;
};

/// Reads that of a folder, if there is one. Errors: Error(config) for what is not JSON; Error(data) naming the place of
/// what is not as expected.
std::optional<ParquetMetadata> read_parquet_metadata(const fs::path& folder);

/// Writes it into the folder `metadata.path` names.
void write_parquet_metadata(const ParquetMetadata&);

}  // namespace hctr
