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

struct ConfigLoading {
  std::vector<std::string> changes{};           ///< the values of --set
  std::function<Json(const Json&)> complete{};  ///< modifies the parsed file
  const std::atomic<int>* stop = nullptr;       ///< may be null
  Environment environment{};
};

/// Reads a config like read_config_file() and connects its layers, with the config's batch size, on one rank. Logs
/// warnings and notes. Errors: Error(config) with every problem; Error(usage) for an invalid change; Error(io);
/// Error(interrupted) if `stop` becomes nonzero while the config is read from a pipe.
Config load_config(const std::filesystem::path&, bool strict, const Log&, const ConfigLoading& = {});
/// Like load_config(), for JSON text. `name`: the name in messages; paths of "include" are relative to its folder.
Config load_config_text(const std::string& text, const std::string& name, bool strict, const Log&,
                        const ConfigLoading& = {});
/// Like load_config(), for the config of a saved model. `name`: the file that it was read from, for messages.
Config load_config(const Json&, const std::string& name, bool strict, const Log&);

}  // namespace hctr
