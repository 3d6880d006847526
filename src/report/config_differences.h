// Finds the differences between the configs of several runs.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"

namespace hctr {

struct ConfigDifference {
  /// JSON pointer, such as "/optimizer/adam_hparam/learning_rate"; layers are named by their first top
  std::string place;
  std::vector<std::string> values;  ///< value in each config, as JSON; empty: missing
};

/// The fields whose values differ between configs, in the order of the first config that has them. A null config is
/// unknown and is not compared.
std::vector<ConfigDifference> config_differences(const std::vector<Json>& configs);

}  // namespace hctr
