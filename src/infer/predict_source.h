// Scores or encodes the samples of a source with a model in memory.
#pragma once

#include <string>

#include "infer/served_model.h"

namespace hctr {

/// Implements Model::predict().
void predict_source(ServedModel&, const std::string& source, const Model::ScoredRows&);
/// Implements Model::encode().
void encode_source(const Config&, const std::string& source, bool partial, const Model::Encoded&);

}  // namespace hctr
