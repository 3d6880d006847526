// Lists the files that a folder or a pattern names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Whether a file name in a folder belongs to a data file. Not data: names that start with '.' or '_', unfinished files
/// (".part", ".tmp") and checksums (".crc").
bool is_data_name(const std::string& name);

/// Lists the data files of a folder, including its partition folders ("day=2020-01-01"), or of all files and folders
/// that match a pattern with *, ? or [...]. The paths are in bytewise order. Empty if `source` is a file, or a missing
/// path that is not a pattern. Errors: Error(io) naming a folder that cannot be read or has no data files, or a pattern
/// without a match; Error(data) if file endings differ, or a folder contains subfolders that are not partitions.
std::optional<std::vector<fs::path>> files_of_folder(const fs::path& source);

/// Whether a path contains pattern characters.
bool is_pattern(const fs::path& source);

/// Whether `source` exists, or is a pattern with at least one match.
bool source_exists(const fs::path& source);

/// A partition in a path: "clicks/day=2020-01-01/hour=7/part.parquet" has day = 2020-01-01 and hour = 7. Percent
/// escapes in values are decoded; a missing value is empty.
struct Partition {
  std::string name, value;
};
std::vector<Partition> partitions_in(const fs::path& file);

}  // namespace hctr
