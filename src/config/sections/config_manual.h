// The manual of configs, generated from the schemas.
#pragma once

#include <string>

namespace hctr {

/// docs/config.md: every section but the dense layers.
std::string config_manual();
/// docs/layers.md: every dense layer and loss.
std::string layers_manual();
/// The entry of one section, layer, optimizer, metric or data format ("solver", "InnerProduct", "Adam", "AUC", "Norm");
/// "config" and "layers" are the whole pages. Names are case-insensitive. Errors: Error(usage) with the nearest known
/// name.
std::string explain(const std::string& name);

}  // namespace hctr
