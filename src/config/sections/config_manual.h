// The manual of configs, generated from the schemas.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hctr {

/// Names, each with what makes its text.
using ManualEntries = std::vector<std::pair<std::string, std::function<std::string()>>>;

/// docs/config.md: every section but the dense layers.
std::string config_manual();
/// docs/layers.md: every dense layer and loss.
std::string layers_manual();
/// The entry of one section, layer, optimizer, metric or data format ("solver", "InnerProduct", "Adam", "AUC", "Norm");
/// "config" and "layers" are the whole pages. `others`: entries of rooms above. Names are case-insensitive. Errors:
/// Error(usage) with the nearest known name.
std::string explain(const std::string& name, const ManualEntries& others = {});

}  // namespace hctr
