// A file list: a text that names the data files of a set, in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// The files of a list, in its order. Windows line ends, blanks around a path and blank lines at the end are accepted.
/// Line 1 may be the number of files. Entries past that number are ignored with a warning: lists written by older tools
/// name one file too many. An entry may be a folder or a pattern (source_files.h). A relative path is looked up in the
/// working directory, then in the folder of the list.
/// Errors: Error(io) when the list or a file does not exist, Error(data) when the text is not a list; both name list
/// and line. `parquet`: whether they are Parquet files.
std::vector<fs::path> read_file_list(const fs::path& list, const Log&, bool parquet = false);

/// Whether each line at the start of a text names a file, so that it is a list without a number. `whole`: `start` is
/// all of the text.
bool names_files(const fs::path& list, std::string_view start, bool whole);

/// The problem of a Parquet file among others.
std::string is_parquet_advice(const fs::path& file);

/// Writes a list. Paths in the list's own folder, or below, are written relative to it where `relative`.
void write_file_list(const fs::path& list, const std::vector<fs::path>& files, bool relative);

}  // namespace hctr
