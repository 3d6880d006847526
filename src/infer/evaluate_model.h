// The metrics of a model in memory.
#pragma once

#include <atomic>
#include <string>

#include "hctr/use_model.h"
#include "infer/loaded_model.h"

namespace hctr {

/// Makes the config evaluate all samples at `path` in place of its own evaluation set.
void set_evaluation_data(const std::string& path, Config&);

/// As Model::evaluate(), with memory of its own. One thread at a time for each model.
EvaluationSummary evaluate_model(LoadedModel&, const std::string& source, const std::atomic<int>* stop, const Log&);

}  // namespace hctr
