// Finds the new data files of a growing data set, in reading order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Marks the end of a growing set: a file with this name in a folder, or a line with this name in a list.
inline constexpr const char* kEndOfFiles = "_END";

/// Files found by one call of look().
struct NewFiles {
  std::vector<std::string> names{};
  bool end = false;  ///< no more files will arrive

  bool empty() const { return names.empty() && !end; }
};

/// Interface of a source of growing data: returns the name of each complete file once. One thread at a time. A Kafka
/// topic is such a source, too. Its rows are collected in files (topic_files.h).
class ArrivingFiles {
 public:
  virtual ~ArrivingFiles() = default;
  /// Returns the files that have arrived since the last call. Does not block. Errors: Error(io), Error(data) if the
  /// source was removed or contradicts names returned earlier.
  virtual NewFiles look() = 0;
};

/// Watches `source` for files after the `known` ones. A writer must complete a file before adding it.
///   folder   The set is the regular files of the folder, except names that start with '.' or '_' or end with
///            ".part" or ".tmp". Writers add a file by renaming it. Files found by one look() are sorted by name. A
///            file _END ends the set.
///   list     The set is the files in a list of one path per line. Writers append lines. A number in line 1 is skipped.
///            A last line without a line end is ignored. A line "_END" ends the set.
/// Errors: Error(io) if `source` does not exist.
std::unique_ptr<ArrivingFiles> arriving_files(const fs::path& source, const std::vector<std::string>& known);

/// The path of a file name returned by look(): in the folder `source`, or resolved like an entry of a list by
/// read_file_list(). Errors: Error(io) if the file does not exist.
fs::path path_of_arrived(const fs::path& source, const std::string& name);

}  // namespace hctr
