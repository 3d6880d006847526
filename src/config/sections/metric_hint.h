// Suggests a metric for an unknown metric name.
#pragma once

#include <string>

namespace hctr {

/// This program's name for another program's metric: "GroupedAUC" for "GAUC". Empty for other words.
std::string metric_elsewhere(const std::string& word);
/// If a known name is close to the word, returns "; did you mean \"GroupedAUC\"?"; otherwise ", which are ..." with all
/// metrics.
std::string metric_hint(const std::string& word);

}  // namespace hctr
