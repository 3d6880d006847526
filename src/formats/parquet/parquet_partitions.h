// Adds the values of Hive partitions as columns.
#pragma once

#include <memory>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Wraps a file and appends a text column for each partition in its path ("day=2024-01-31"). Partitions with the name
/// of an existing column are skipped. Returns the file itself if no column is added.
std::shared_ptr<ParquetFile> with_partitions(std::shared_ptr<ParquetFile>, const fs::path&);

}  // namespace hctr
