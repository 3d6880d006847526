// Where the files of a growing set come from: names of new data files, in the order in which they are to be read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// The name of a file in a folder, and the entry of a list, that says that no more files come.
inline constexpr const char* kEndOfFiles = "_END";

/// The files that have arrived since the last look.
struct NewFiles {
  std::vector<std::string> names{};
  bool end = false;  ///< no more will come

  bool empty() const { return names.empty() && !end; }
};

/// Used by one thread at a time. Another origin is another class with this interface: it names complete files, each
/// once. One is a topic of Kafka, whose rows are collected in files (topic_files.h).
class ArrivingFiles {
 public:
  virtual ~ArrivingFiles() = default;
  /// Does not wait. Errors: Error(io), Error(data) when the origin is gone or contradicts what it has named before.
  virtual NewFiles look() = 0;
};

/// The files of `source` after the `known` ones. A writer completes a file before adding it. A folder: its regular
/// files, without those whose names start with '.' or '_' or end with ".part" or ".tmp". Writers add a file by
/// renaming. Files found by one look are ordered by name. A file _END ends the folder. A list: a text with one path in
/// each line, to which lines are appended; a number in line 1 is skipped. A line counts once its line end is written. A
/// line "_END" ends the list. Errors: Error(io) if the folder or file does not exist.
std::unique_ptr<ArrivingFiles> arriving_files(const fs::path& source, const std::vector<std::string>& known);

/// The path of a named file: in the folder, or found like entries by read_file_list(). Errors: Error(io) when there is
/// no such file.
fs::path path_of_arrived(const fs::path& source, const std::string& name);

}  // namespace hctr
