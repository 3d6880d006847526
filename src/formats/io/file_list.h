// File lists: text files that name the data files of a set in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// The files of a list, in list order. Windows line ends, blanks around a path and trailing blank lines are allowed.
/// Line 1 may be the number of files. Entries beyond that number are ignored with a warning, because older tools write
/// one entry too many. An entry may be a folder or a pattern (source_files.h). A relative path is looked up in the
/// working directory, then in the list's folder. Errors, naming list and line: Error(io) if the list or a file does not
/// exist; Error(data) if the text is not a list. `parquet`: whether the entries may be Parquet files.
std::vector<fs::path> read_file_list(const fs::path& list, const Log&, bool parquet = false);

/// Whether each line names a file. The text is then a list without a number of files in line 1. `start`: the start of
/// the text; `whole`: `start` is the whole text.
bool names_files(const fs::path& list, std::string_view start, bool whole);

/// The message about a Parquet file in a list of another format.
std::string is_parquet_advice(const fs::path& file);

/// Writes a list. `relative`: paths in the list's folder or its subfolders are written relative to that folder.
void write_file_list(const fs::path& list, const std::vector<fs::path>& files, bool relative);

}  // namespace hctr
