// The files that a folder or a pattern names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Whether a file of this name in a folder is data: those that start with '.' or '_' are not, nor are unfinished ones,
/// which end with ".part" or ".tmp", nor are check sums, which end with ".crc".
bool is_data_name(const std::string& name);

/// The data files of a folder, including those in partition folders ("day=2020-01-01"), or those that match a pattern
/// with *, ? or [...], including those in matching folders; in bytewise order of their paths. Nothing if `source` is a
/// file, or a missing name without pattern characters. Errors: Error(io) naming a folder that cannot be read or has no
/// data file, or a pattern without a match; Error(data) if names have different endings, or a folder holds folders
/// other than partitions.
std::optional<std::vector<fs::path>> files_of_folder(const fs::path& source);

/// Whether a path has signs of a pattern.
bool is_pattern(const fs::path& source);

/// Whether `source` exists, or is a pattern with a match.
bool source_exists(const fs::path& source);

/// The partitions in a path: day, 2020-01-01, and hour, 7, of "clicks/day=2020-01-01/hour=7/part.parquet". Codes such
/// as %20 in values are decoded; a missing value is empty.
struct Partition {
  std::string name, value;
};
std::vector<Partition> partitions_in(const fs::path& file);

}  // namespace hctr
