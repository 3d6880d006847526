// The optimizers that a config can select.
#pragma once

#include <string>
#include <vector>

#include "config/sections/optimizer_section.h"

namespace hctr {

/// The config names of an update rule from ops/optimizer/optimizer_rules.h.
struct OptimizerType {
  ops::Optimizer::Kind kind;
  std::string name;     ///< the value of "type"
  std::string object;   ///< name of the object with the rule's constants
  std::string formula;  ///< the formula, for the manual
  void (*add_constants)(Schema<HyperParameters>&);
  std::string rate_alias{};  ///< another spelling of "learning_rate"; empty: none

  /// The schema of the object: the learning rate and its schedule, which all optimizers have, and the rule's constants.
  Schema<HyperParameters> schema() const;
};

/// All optimizers, in manual order.
const std::vector<OptimizerType>& optimizer_catalog();
const OptimizerType& optimizer_type(ops::Optimizer::Kind);

}  // namespace hctr
