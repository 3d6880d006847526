// The metric that an unknown word most likely means.
#pragma once

#include <string>

namespace hctr {

/// The metric for another program's name: "GroupedAUC" for "GAUC"; empty for other words.
std::string metric_elsewhere(const std::string& word);
/// "; did you mean \"GroupedAUC\"?", or ", which are ..." with all metrics.
std::string metric_hint(const std::string& word);

}  // namespace hctr
