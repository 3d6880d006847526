// The manual of configs, written out from the declarations.
#pragma once

#include <string>

namespace hctr {

/// docs/config.md: every section but the dense layers.
std::string config_manual();
/// docs/layers.md: every dense layer and loss.
std::string layers_manual();
/// The entry of one section, layer, optimizer, metric or data format ("solver", "InnerProduct", "Adam", "AUC", "Norm");
/// "config" and "layers" are the whole pages. Upper and lower case are alike.
/// Errors: Error(usage) with the nearest name of all of these.
std::string explain(const std::string& name);

}  // namespace hctr
