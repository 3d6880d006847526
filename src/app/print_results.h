// The results of commands on the standard output.
#pragma once

#include <string>

#include "hctr/solver.h"
#include "hctr/use_model.h"

namespace hctr {

void print_summary(const TrainSummary&);
/// Metrics as print_summary() has them; or all of it as one line of JSON.
void print_evaluation(const EvaluationSummary&, bool as_json);
/// On the standard error stream, since scores may be on the other one.
void print_prediction(const PredictionSummary&, const std::string& out);

}  // namespace hctr
