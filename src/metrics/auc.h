// The area under the ROC curve, exactly, of samples that are all in memory.
#pragma once

#include <span>

namespace hctr {

/// The probability that a positive has a higher score than a negative, ties counting one half: the area by trapezoids
/// with equal scores as one step. NaN when there are no positives or no negatives, or a score is NaN. Cost: a sort of
/// the scores.
double area_under_roc(std::span<const double> scores, std::span<const bool> positive);

}  // namespace hctr
