// Writes the arrays of a model as Parquet files.
#pragma once

#include <vector>

#include "core/base/files.h"
#include "export/model_arrays.h"

namespace hctr {

/// Writes one row per array, with columns name (text), shape (list of int64) and values (list of float32).
void write_parquet_arrays(FileSet&, const fs::path&, const std::vector<StoredArray>&);
/// Writes one row per table row, with columns key (int64), slot (int64, only if rows are identified by slot and key)
/// and vector (list of float32).
void write_parquet_table(FileSet&, const fs::path&, const TableArrays&);

}  // namespace hctr
