// Where the configs of several runs differ.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"

namespace hctr {

struct ConfigDifference {
  std::string place;                ///< "/optimizer/adam_hparam/learning_rate"; layers by their first top
  std::vector<std::string> values;  ///< value in each config, as JSON; empty: missing
};

/// The places whose values differ between configs, in the order of the first config that has them. A null config is
/// unknown and not compared.
std::vector<ConfigDifference> config_differences(const std::vector<Json>& configs);

}  // namespace hctr
