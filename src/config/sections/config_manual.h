// The manual of config files, generated from the schemas.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hctr {

/// Entry names, each with the function that generates the entry's text.
using ManualEntries = std::vector<std::pair<std::string, std::function<std::string()>>>;

/// The text of docs/config.md: every section except dense layers.
std::string config_manual();
/// The text of docs/layers.md: every dense layer and loss.
std::string layers_manual();
/// The manual entry of one section, layer, optimizer, metric or data format ("solver", "InnerProduct", "Adam", "AUC",
/// "Norm"). "config" and "layers" return whole pages. `others`: entries whose source folders this one may not include.
/// Names are case-insensitive. Errors: Error(usage) with the closest known name.
std::string explain(const std::string& name, const ManualEntries& others = {});

}  // namespace hctr
