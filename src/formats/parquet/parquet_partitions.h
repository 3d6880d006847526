// Values of Hive's partitions as columns.
#pragma once

#include <memory>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// The file with a text column for each partition in its path ("day=2024-01-31"), after its own columns, except
/// partitions that are columns already. The file unchanged if there are none.
std::shared_ptr<ParquetFile> with_partitions(std::shared_ptr<ParquetFile>, const fs::path&);

}  // namespace hctr
