// The files that `source` names: one data file, the files of a list, those of a folder, or those that a pattern
// matches (source_files.h).
#pragma once

#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// Norm data: `source` is a list unless it is a folder or a pattern. Errors: those of read_file_list() and
/// files_of_folder(), as of all below.
std::vector<fs::path> norm_files(const fs::path& source, const Log&);
/// Raw data: `source` is a list when its first bytes are a text, for a data file holds zeros. Errors: those of
/// read_file_list(). `parquet`: whether a list may name Parquet files.
std::vector<fs::path> raw_files(const fs::path& source, const Log&, bool parquet = false);
/// Text: `source` is a list when its first line is a number alone, which no row of two columns is, or each line names a
/// file. Errors: those of read_file_list().
std::vector<fs::path> text_files(const fs::path& source, const Log&);
/// The files of several sources of text. Pipes, and "-", stay as they are.
std::vector<std::string> text_inputs(const std::vector<std::string>& inputs, const Log&);
/// Whether a file starts as Parquet files do. Errors: Error(io).
bool is_parquet(const fs::path&);
/// Parquet: `source` is a list unless it starts as Parquet files do. Errors: those of read_file_list().
std::vector<fs::path> parquet_files(const fs::path& source, const Log&);

}  // namespace hctr
