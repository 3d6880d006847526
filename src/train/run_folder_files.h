// The files in a run folder before a run takes it: which run they belong to, and whether they are kept, moved or
// removed.
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
/// Renames a folder that holds an earlier run. `inputs`: files that the run reads. Errors: Error(io); Error(config) if
/// one of them lies in the folder.
void move_away(const fs::path& folder, const std::vector<fs::path>& inputs, const Log&);
/// Removes unfinished files that dead processes have left in the folder.
void remove_dead_parts(const fs::path& folder, const Log&);
/// Whether a run writes a file of this name into its folder.
bool is_file_of_run(const std::string& name);

/// Whether byte `end` of a text begins a line, or the text is shorter.
bool ends_a_line(const fs::path& text, int64_t end);
/// Renames a file that belongs to another run to <name>.1 (.2, ...), with a warning. Errors: Error(io).
void keep_foreign(const fs::path& file, const Log&);

}  // namespace hctr
