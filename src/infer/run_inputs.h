// The files that a command with a config reads and writes.
#pragma once

#include <vector>

#include "config/sections/config.h"
#include "core/base/files.h"

namespace hctr {

/// Lists the config and its includes, the data and all files that the Data layer names, and initial model files. {rank}
/// in paths of data must already be replaced.
std::vector<fs::path> input_files(const fs::path& config_file, const Config&, const Environment&);

/// Checks that no output file of the config is also an input. Errors: Error(config).
void expect_outputs_of_config(const fs::path& config_file, const Config&, const Environment&);
/// Checks that the file of --metrics-file is not an input. Errors: Error(usage).
void expect_metrics_file(const fs::path& metrics_file, const fs::path& config_file, const Config&, const Environment&);

}  // namespace hctr
