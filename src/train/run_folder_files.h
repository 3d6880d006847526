// Files that are in a run folder before the run: decides which run they belong to, and keeps, moves or removes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "infer/run_ids.h"

namespace hctr {

/// Creates a new folder under runs/, named after the config and the time. Errors: Error(io).
fs::path new_run_folder(const fs::path& config);
/// Renames a folder that belongs to an earlier run. `inputs`: files that the new run reads. Errors: Error(io);
/// Error(config) if an input is in the folder.
void move_away(const fs::path& folder, const std::vector<fs::path>& inputs, const Log&);
/// Removes unfinished files of dead processes from the folder.
void remove_dead_parts(const fs::path& folder, const Log&);
/// Whether runs write a file with this name into their folders.
bool is_file_of_run(const std::string& name);

/// Whether a line of the file ends just before byte `end`, or the file is shorter.
bool ends_a_line(const fs::path& text, int64_t end);
/// Renames a file of another run to <name>.1 (.2, ...), with a warning. Errors: Error(io).
void keep_foreign(const fs::path& file, const Log&);

}  // namespace hctr
