#include "config/sections/metric_hint.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "config/problems.h"
#include "core/base/expect.h"
#include "metrics/metrics.h"

namespace hctr {
namespace {

char lower_case(char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); }

/// Metric names of other programs, with this program's names.
constexpr std::pair<const char*, const char*> kMetricsElsewhere[] = {{"GAUC", "GroupedAUC"},
                                                                     {"UAUC", "GroupedAUC"},
                                                                     {"GroupAUC", "GroupedAUC"},
                                                                     {"QAUC", "GroupedAUC"},
                                                                     {"UserAUC", "GroupedAUC"},
                                                                     {"ROC_AUC", "AUC"},
                                                                     {"ROCAUC", "AUC"},
                                                                     {"AUROC", "AUC"},
                                                                     {"BCE", "AverageLoss"},
                                                                     {"Loss", "AverageLoss"},
                                                                     {"CrossEntropy", "AverageLoss"},
                                                                     {"NE", "NormalizedEntropy"},
                                                                     {"PCOC", "Calibration"},
                                                                     {"COPC", "Calibration"}};

}  // namespace

std::string metric_elsewhere(const std::string& word) {
  std::string letters;
  for (const char letter : word)
    if (letter != '-' && letter != ' ') letters += letter;
  for (const auto& [other, ours] : kMetricsElsewhere)
    if (std::ranges::equal(letters, std::string_view(other), {}, lower_case, lower_case)) return ours;
  return "";
}

std::string metric_hint(const std::string& word) {
  if (const std::string ours = metric_elsewhere(word); !ours.empty()) return cat("; did you mean \"", ours, "\"?");
  std::vector<std::string> names;
  for (const MetricType& type : metric_types()) {
    names.push_back(type.name);
    names.insert(names.end(), type.aliases.begin(), type.aliases.end());
  }
  const std::string hint = did_you_mean(word, names, 3);
  return hint.empty() ? cat(", which are ", one_of(names)) : hint;
}

}  // namespace hctr
