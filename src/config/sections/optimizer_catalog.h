// The optimizers that a config may name.
#pragma once

#include <string>
#include <vector>

#include "config/sections/optimizer_section.h"

namespace hctr {

/// How a config names a rule of ops/optimizer/optimizer_rules.h.
struct OptimizerType {
  ops::Optimizer::Kind kind;
  std::string name;     ///< the value of "type"
  std::string object;   ///< the object with its constants
  std::string formula;  ///< formula that the manual prints
  void (*add_constants)(Schema<HyperParameters>&);
  std::string rate_alias{};  ///< another spelling of "learning_rate"; empty: none

  /// The fields of the object: the rate and its schedule, which every optimizer has, and its constants.
  Schema<HyperParameters> schema() const;
};

/// Every optimizer, in the order of the manual.
const std::vector<OptimizerType>& optimizer_catalog();
const OptimizerType& optimizer_type(ops::Optimizer::Kind);

}  // namespace hctr
