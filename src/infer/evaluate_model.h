// Evaluates a model in memory.
#pragma once

#include <atomic>
#include <string>

#include "hctr/use_model.h"
#include "infer/loaded_model.h"

namespace hctr {

/// Makes the config evaluate all samples at `path` instead of its evaluation set.
void set_evaluation_data(const std::string& path, Config&);

/// Implements Model::evaluate(), with activations of its own. Only one thread at a time may evaluate a model.
EvaluationSummary evaluate_model(LoadedModel&, const std::string& source, const std::atomic<int>* stop, const Log&);

}  // namespace hctr
