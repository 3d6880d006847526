// The area under the ROC curve, exactly: the share of (positive, negative) pairs in which the positive scores higher.
#pragma once

#include <span>

namespace hctr {

/// Equal scores count half. Shapes: scores [n], positive [n], true where the label is 1.
/// Errors: Error(data) when there are no positives or no negatives. Cost: a sort.
double exact_auc(std::span<const double> scores, std::span<const bool> positive);

}  // namespace hctr
