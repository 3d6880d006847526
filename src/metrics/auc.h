// The exact area under the ROC curve of samples in memory.
#pragma once

#include <span>

namespace hctr {

/// The probability that a positive scores higher than a negative, where ties count 0.5. NaN if there are no positives
/// or no negatives, or if a score is NaN. Cost: sorts the scores.
double area_under_roc(std::span<const double> scores, std::span<const bool> positive);

}  // namespace hctr
