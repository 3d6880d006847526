// Decides which features of a feature specification become the labels, dense values and slots of a Data layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/data/data_section.h"
#include "formats/features/feature_spec.h"

namespace hctr {

/// Indices into FeatureSpec::features, in sample order.
struct FeatureUse {
  std::vector<size_t> labels, dense, slots;
};

/// Selects the features of each input. An input reads the channel named like its `top`. If there is no such channel,
/// labels read "label", dense values read "numerical", and the sparse inputs share the features of "categorical" in
/// order. Adds to `problems`: missing channels, channels with the wrong number of features, and slots whose type is not
/// an id type.
FeatureUse use_features(const FeatureSpec&, const DataSection&, const std::string& pointer, Problems&);

/// Completes a section with `feature_spec`: sets its format, the mappings "train" and (if present) "test", and
/// slot_size_array from the cardinalities. If the specification does not exist yet, adds a note and skips checks that
/// need it.
void complete_feature_section(DataSection&, const std::string& pointer, Problems&);

/// Further checks of sections with format FeatureSpec.
void check_feature_section(const DataSection&, const std::string& pointer, Problems&);

}  // namespace hctr
