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
///   "-" as path                    the standard input
///   "include": "base.json"         in the outermost object, or an array of files, whose paths are relative to the file
///                                  that names them. Later ones, then the file itself, replace what earlier ones have:
///                                  objects field by field, everything else whole; null leaves a field out
///   "${NAME}" in any string        a variable of `environment`; "${NAME:-text}" where it may be missing or empty,
///                                  with a text without variables; "$${" stands for "${". Names of columns and texts
///                                  of cells ("column", "columns", "labels", "positive", "missing") have no variables
///   changes                        "solver.batchsize=1024" sets a field, and with null leaves it out. An element of an
///                                  array is named by its number from 0, its "top", its "name" or its "type". The value
///                                  is JSON, or else a text
///
/// Errors: Error(config) naming file, place and what would be right; Error(usage) for a change that does not fit;
/// Error(io).
Json read_config_file(const std::filesystem::path&, const std::vector<std::string>& changes = {},
                      const std::atomic<int>* stop = nullptr, const Environment& environment = {});
/// The same for a text. `name`: its name in messages; included files are relative to its folder.
Json read_config_text(const std::string& text, const std::filesystem::path& name, const Environment& environment = {});
/// A config's file and its includes; for a source that can be read only once, such as a pipe, only its path. Errors: as
/// above.
std::vector<std::filesystem::path> files_of_config(const std::filesystem::path&, const Environment& = {});
/// The inverse: the config whose file yields this one, with "$${" in place of "${" in every string.
Json with_escaped_variables(const Json& config);
/// A config with changes applied. Errors: Error(usage) for one that does not fit.
Json with_changes(Json config, const std::vector<std::string>& changes);

}  // namespace hctr
