// Where the files of a growing set come from: names of new data files, in the order in which they are to be read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// The name of a file in a folder, and the entry of a list, that says that no more files come.
inline constexpr const char* kEndOfFiles = "_END";

/// What has come since one last looked.
struct NewFiles {
  std::vector<std::string> names{};
  bool end = false;  ///< no more will come

  bool empty() const { return names.empty() && !end; }
};

/// Used by one thread at a time. Another origin, such as a message queue whose records are collected in files, is one
/// more class of this kind: it names files that are complete, each once.
class ArrivingFiles {
 public:
  virtual ~ArrivingFiles() = default;
  /// Does not wait. Errors: Error(io), Error(data) when the origin is gone or contradicts what it has named before.
  virtual NewFiles look() = 0;
};

/// The files of `source`, which come after those that are `known` already. Whoever adds a file makes it complete first.
/// A folder: its regular files, without those whose names start with '.' or '_' or end with ".part" or ".tmp". A file
/// is put into it by renaming. Those found at one look come in the order of their names. Its end is a file _END.
/// A list: a text with one path in each line, to which lines are appended; a number in line 1 is passed over. A line
/// counts once its line end is there. Its end is a line "_END".
/// Errors: Error(io) when there is no such folder or file.
std::unique_ptr<ArrivingFiles> arriving_files(const fs::path& source, const std::vector<std::string>& known);

/// The path of a file that was named: in the folder, or as read_file_list() looks up the entries of a list. Errors:
/// Error(io) when there is no such file.
fs::path path_of_arrived(const fs::path& source, const std::string& name);

}  // namespace hctr
