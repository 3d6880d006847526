// The metrics of a model in memory.
#pragma once

#include <atomic>
#include <string>

#include "hctr/use_model.h"
#include "infer/loaded_model.h"

namespace hctr {

/// The samples at a path in place of the config's evaluation set, all of them.
void set_evaluation_data(const std::string& path, Config&);

/// As Model::evaluate(), with memory of its own. One thread at a time for each model.
EvaluationSummary evaluate_model(LoadedModel&, const std::string& source, const std::atomic<int>* stop, const Log&);

}  // namespace hctr
