// The data files that `source` names: a single file, or all files of a list, a folder or a pattern (source_files.h).
#pragma once

#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// Norm files. `source` is a list unless it is a folder or a pattern. Errors, also of raw_files(), text_files(),
/// text_inputs() and parquet_files(): those of read_file_list() and files_of_folder().
std::vector<fs::path> norm_files(const fs::path& source, const Log&);
/// Raw files. `source` is a list if its first bytes are text, because the start of a Raw file contains zero bytes.
/// `parquet`: whether a list may name Parquet files.
std::vector<fs::path> raw_files(const fs::path& source, const Log&, bool parquet = false);
/// Text files. `source` is a list if its first line is a single number (a data row has at least two columns), or if
/// each line names a file.
std::vector<fs::path> text_files(const fs::path& source, const Log&);
/// The text files of several sources. Pipes and "-" are returned unchanged.
std::vector<std::string> text_inputs(const std::vector<std::string>& inputs, const Log&);
/// Whether a file starts with the Parquet magic bytes. Errors: Error(io).
bool is_parquet(const fs::path&);
/// Parquet files. `source` is a list unless it is itself a Parquet file.
std::vector<fs::path> parquet_files(const fs::path& source, const Log&);

}  // namespace hctr
