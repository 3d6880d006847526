// Opens Parquet files through the plug-in and converts its error texts to exceptions.
#pragma once

#include <memory>
#include <string>

#include "core/base/files.h"
#include "formats/parquet/parquet_plugin.h"

namespace hctr {

/// Loads the plug-in on first use. Errors: Error(io) with instructions to install the plug-in.
const ParquetPlugin& parquet_plugin();
/// The reason why the plug-in is not available; empty if it is.
std::string why_no_parquet();

/// The function that frees the `owner` of values read from this file's columns.
void (*drop_of(const ParquetFile&))(void* owner);

/// Rows per piece. The rows of a piece are decoded together. Their decoded values and parsed samples fit the L2 cache.
inline constexpr int64_t kParquetPieceRows = 8192;

/// Opens a file, or an in-memory table by its name. Errors: Error(io) if the file does not exist; Error(data) if it is
/// truncated or damaged.
std::shared_ptr<ParquetFile> open_parquet(const fs::path&);

}  // namespace hctr
