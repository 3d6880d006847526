// The files that `source` names: one data file, or the files of a list.
#pragma once

#include <vector>

#include "base/files.h"
#include "base/log.h"

namespace hctr {

/// Raw data: `source` is a list when its first bytes are a text, for a data file holds zeros. Errors: those of
/// read_file_list(). `parquet`: whether a list may name Parquet files.
std::vector<fs::path> raw_files(const fs::path& source, const Log&, bool parquet = false);
/// Text: `source` is a list when its first line is a number alone, which no row of two columns is. Errors: those of
/// read_file_list().
std::vector<fs::path> text_files(const fs::path& source, const Log&);
/// Whether a file starts as Parquet files do. Errors: Error(io).
bool is_parquet(const fs::path&);
/// Parquet: `source` is a list unless it starts as Parquet files do. Errors: those of read_file_list().
std::vector<fs::path> parquet_files(const fs::path& source, const Log&);

}  // namespace hctr
