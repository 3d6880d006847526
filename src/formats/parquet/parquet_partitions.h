// Values of Hive's partitions as columns.
#pragma once

#include <memory>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// The file with a column of text for each partition in its path ("day=2024-01-31"), behind its own columns; one that
/// it has itself is left out. The file as it is where there are none.
std::shared_ptr<ParquetFile> with_partitions(std::shared_ptr<ParquetFile>, const fs::path&);

}  // namespace hctr
