// The results of commands on the standard output.
#pragma once

#include <string>

#include "hctr/solver.h"
#include "hctr/use_model.h"

namespace hctr {

/// Lines for people, or one line of JSON.
void print_summary(const TrainSummary&, bool as_json);
/// Metrics as print_summary() has them; or all of it as one line of JSON.
void print_evaluation(const EvaluationSummary&, bool as_json);
/// On the standard error stream, since scores may be on the other one.
void print_prediction(const PredictionSummary&, const std::string& out);
/// The files on the standard output, a line each; the rest on the standard error stream.
void print_export(const ExportSummary&, const std::string& folder);

}  // namespace hctr
