// A file list: a text that names the data files of a set, in order.
#pragma once

#include <vector>

#include "base/files.h"
#include "base/log.h"

namespace hctr {

/// The files of a list, in its order. Windows line ends, blanks around a path and blank lines at the end are accepted.
/// A relative path is looked up in the working directory, then in the folder of the list. Entries past the number in
/// line 1 are ignored with a warning: lists written by older tools name one file too many.
/// Errors: Error(io) when the list or a file does not exist, Error(data) when the text is no list; both name list and
/// line. `parquet`: whether they are Parquet files.
std::vector<fs::path> read_file_list(const fs::path& list, const Log&, bool parquet = false);

/// Writes a list. Paths in the list's own folder, or below, are written relative to it where `relative`.
void write_file_list(const fs::path& list, const std::vector<fs::path>& files, bool relative);

}  // namespace hctr
