// The metrics that the true probabilities of generated data reach in an evaluation.
#pragma once

#include <map>
#include <string>

#include "config/sections/config.h"
#include "metrics/best_possible.h"

namespace hctr {

/// The metrics of the true probabilities, named as in Evaluator::Result: AUC of the first loss, AUC/<top> of each
/// further loss, AverageLoss of the weighted sum and, with several losses, AverageLoss/<top> of each. A loss is
/// evaluated on the labels that it reads, which may be columns of a Slice. If a loss reads the label in another way,
/// its best value is unknown, and so is the sum. Penalties and target weights are not included.
std::map<std::string, double> best_metrics(const Config&, const BestPossible&);
/// The best values of the metrics in "eval_metrics", from the file <eval_source>.truth.json. Empty if this file does
/// not exist.
std::map<std::string, double> best_metrics(const Config&);

}  // namespace hctr
