// Prints the results of commands.
#pragma once

#include <string>

#include "hctr/solver.h"
#include "hctr/use_model.h"

namespace hctr {

/// Prints readable lines, or one line of JSON.
void print_summary(const TrainSummary&, bool as_json);
/// Prints the metrics like print_summary(), or the complete summary as one line of JSON.
void print_evaluation(const EvaluationSummary&, bool as_json);
/// Prints to the standard error stream, because the standard output may contain the scores.
void print_prediction(const PredictionSummary&, const std::string& out);
/// Prints the files on the standard output, one per line, and the other results on the standard error stream.
void print_export(const ExportSummary&, const std::string& folder);

}  // namespace hctr
