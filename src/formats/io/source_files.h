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

/// The data files of a folder, those in folders of partitions ("day=2020-01-01") inside it included, or those that a
/// pattern with *, ? or [...] matches, of which folders are looked into likewise; in bytewise order of their paths.
/// Nothing when `source` is a file, or there is nothing of the name and it has no sign of a pattern. Errors: Error(io)
/// naming a folder that cannot be read or has no data file, or a pattern that matches none; Error(data) where names
/// have different endings, or a folder holds others than partitions.
std::optional<std::vector<fs::path>> files_of_folder(const fs::path& source);

/// Whether a path has signs of a pattern.
bool is_pattern(const fs::path& source);

/// Whether `source` is there, or is a pattern that something matches.
bool source_exists(const fs::path& source);

/// The partitions in a path: day, 2020-01-01, and hour, 7, of "clicks/day=2020-01-01/hour=7/part.parquet". Values are
/// those that stand in the path in codes such as %20; a missing one is empty.
struct Partition {
  std::string name, value;
};
std::vector<Partition> partitions_in(const fs::path& file);

}  // namespace hctr
