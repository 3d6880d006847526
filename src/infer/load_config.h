// Reads and checks a config file.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "net/graph/graph.h"

namespace hctr {

/// Reads a config like read_config_file() and connects its layers (with its own batch size, on one rank). Logs warnings
/// and notes. `complete` modifies the parsed file. Errors: Error(config) with every problem; Error(usage) for a change
/// that does not fit; Error(io); Error(interrupted) once `stop`, which may be null, is nonzero while a pipe is read.
Config load_config(const std::filesystem::path&, bool strict, const Log&, const std::vector<std::string>& changes = {},
                   const std::function<Json(const Json&)>& complete = {}, const std::atomic<int>* stop = nullptr,
                   const Environment& environment = {});
/// The same for a text. `name`: for messages; paths of "include" are relative to its folder.
Config load_config_text(const std::string& text, const std::string& name, bool strict, const Log&,
                        const std::vector<std::string>& changes, const std::function<Json(const Json&)>& complete,
                        const Environment&);
/// The same for a config that a saved model holds. `name`: where it was read, for messages.
Config load_config(const Json&, const std::string& name, bool strict, const Log&);

}  // namespace hctr
