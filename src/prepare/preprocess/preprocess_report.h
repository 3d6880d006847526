// Describes the result of preprocess() as JSON, and as the Data layer that reads it.
#pragma once

#include "config/json.h"
#include "prepare/preprocess/preprocess.h"

namespace hctr {

/// The `Data` layer of a config that trains on the result.
Json preprocess_data_section(const PreprocessOptions&, const PreprocessSummary&);

/// Returns {"schema": 1, "format", "passes", "train", "eval", "labels", "dense", "slots", "slot_size_array", "data"};
/// docs/data_tools.md describes each field.
Json describe_preprocessed(const PreprocessOptions&, const PreprocessSummary&);

}  // namespace hctr
