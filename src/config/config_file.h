// Composes a config: included files, environment variables, changes from the command line.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "config/json.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Reads a config.
///
///   "-" as path                    reads the standard input
///   "include": "base.json"         merges one file or an array of files; allowed in the outermost object. Paths are
///                                  relative to the including file. Later files override earlier ones, and the
///                                  including file overrides all. Objects are merged field by field, other values
///                                  replaced; null removes a field
///   "${NAME}" in any string        is replaced by a variable of `environment`; "${NAME:-text}" gives a default for a
///                                  missing or empty variable; "$${" is a literal "${". Column names and cell texts
///                                  ("column", "columns", "labels", "positive", "missing") are not expanded
///   changes                        "solver.batchsize=1024" sets a field; the value null removes the field. An array
///                                  element is addressed by its index, "top", "name" or "type". A value that is not
///                                  JSON is a string
///
/// Errors: Error(config) naming the file, the field and the expected value; Error(usage) for a change that does not
/// apply; Error(io).
Json read_config_file(const std::filesystem::path&, const std::vector<std::string>& changes = {},
                      const std::atomic<int>* stop = nullptr, const Environment& environment = {});
/// Reads a config from `text`. `name`: the path that messages show for the text; the paths of included files are
/// relative to the folder of this path.
Json read_config_text(const std::string& text, const std::filesystem::path& name, const Environment& environment = {});
/// The paths of a config file and its includes. If the source can be read only once, such as a pipe, returns only its
/// path. Errors: those of read_config_file().
std::vector<std::filesystem::path> files_of_config(const std::filesystem::path&, const Environment& = {});
/// Replaces "${" by "$${" in every string. Reading the result as a config yields `config` again.
Json with_escaped_variables(const Json& config);
/// A config with --set changes applied. Errors: Error(usage) for a change that does not apply.
Json with_changes(Json config, const std::vector<std::string>& changes);

}  // namespace hctr
