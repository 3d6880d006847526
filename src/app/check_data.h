// Compares the first samples of each data file with the config.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "hctr/solver.h"

namespace hctr {

struct DataCheck {
  std::string text;  ///< a readable report
  Json json;
  int64_t problems = 0;
  std::vector<CheckOptions::Slot> slots;  ///< for each slot of a record, in order: statistics of the training data
};

/// Opens a config's source and eval_source, reads the headers of all files and the first samples of each file. Errors:
/// Error(config); Error(io) for missing files.
DataCheck check_data(const Json& config, const std::string& name);

}  // namespace hctr
