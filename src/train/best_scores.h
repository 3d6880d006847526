// What the truth behind generated data would score in an evaluation of a config.
#pragma once

#include <map>
#include <string>

#include "metrics/best_possible.h"
#include "model/config.h"

namespace hctr {

/// The scores of the truth under the names of Evaluator::Result: AUC of the first loss, AUC/<top> of each other,
/// AverageLoss of the weighted sum and, where there are several, AverageLoss/<top> of each. A loss is scored by the
/// labels it reads, which may be columns that a Slice cut out; a loss that reads the label otherwise has no known best,
/// nor has then the sum. Penalties are no part of it, nor are target weights.
std::map<std::string, double> best_scores(const Config&, const BestPossible&);

}  // namespace hctr
