// The files that a command with a config reads, and those that it writes where the user says.
#pragma once

#include <vector>

#include "config/sections/config.h"
#include "core/base/files.h"

namespace hctr {

/// The config and what it includes, the data and all files that the Data layer names, model files and others to start
/// from. {rank} in paths of data must be filled in.
std::vector<fs::path> input_files(const fs::path& config_file, const Config&, const Environment&);

/// Files that the config names for writing must not be among those that are read. Errors: Error(config).
void expect_outputs_of_config(const fs::path& config_file, const Config&, const Environment&);
/// The same for the file of --metrics-file. Errors: Error(usage).
void expect_metrics_file(const fs::path& metrics_file, const fs::path& config_file, const Config&, const Environment&);

}  // namespace hctr
