// Opens Parquet files through the plug-in, and turns its error texts into exceptions.
#pragma once

#include <memory>
#include <string>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Loads the plug-in, once. Errors: Error(io) naming how to get one.
const ParquetPlugin& parquet_plugin();
/// Why the plug-in is missing; empty if it is there.
std::string why_no_parquet();

/// The function that releases the owner of values read from columns of a file.
void (*drop_of(const ParquetFile&))(void* owner);

/// Rows that are decoded at a time: as values and as samples they fit the second-level cache together.
inline constexpr int64_t kParquetPieceRows = 8192;

/// `path`: of a file, or a table in memory by its name. Errors: Error(io) when there is no such file, Error(data) when
/// it is not whole.
std::shared_ptr<ParquetFile> open_parquet(const fs::path&);

}  // namespace hctr
