// Reads and checks a config file.
#pragma once

#include <filesystem>

#include "base/log.h"
#include "model/config.h"
#include "model/graph.h"

namespace hctr {

/// Reads the file and connects its layers (with its own batch size, on one rank). Warnings and notes go to the log.
/// Errors: Error(config) with every problem; Error(io).
Config load_config(const std::filesystem::path&, bool strict, const Log&);

}  // namespace hctr
