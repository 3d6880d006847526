// The metrics that the known truth of generated data reaches in an evaluation.
#pragma once

#include <map>
#include <string>

#include "config/sections/config.h"
#include "metrics/best_possible.h"

namespace hctr {

/// The metrics of the truth, by the names of Evaluator::Result: AUC of the first loss, AUC/<top> of each other loss,
/// AverageLoss of the weighted sum and, with several losses, AverageLoss/<top> of each. A loss is measured on the
/// labels that it reads, which may be columns of a Slice. A loss that reads the label in another way has no known best,
/// and then neither has the sum. Penalties and target weights are not included.
std::map<std::string, double> best_metrics(const Config&, const BestPossible&);
/// Those of eval_metrics, of the truth next to eval_source; none where there is none.
std::map<std::string, double> best_metrics(const Config&);

}  // namespace hctr
