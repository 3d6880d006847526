// The manual of configs, written out from the declarations.
#pragma once

#include <string>

namespace hctr {

/// docs/config.md: every section but the dense layers.
std::string config_manual();
/// docs/layers.md: every dense layer and loss.
std::string layers_manual();
/// The entry of one section or layer ("solver", "Adam" is part of "optimizer", "InnerProduct").
/// Errors: Error(usage) with the nearest name.
std::string explain(const std::string& name);

}  // namespace hctr
