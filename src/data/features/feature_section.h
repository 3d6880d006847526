// A Data layer with "feature_spec": which features of the specification become its labels, dense values and slots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/data_section.h"
#include "data/features/feature_spec.h"

namespace hctr {

/// Indices into FeatureSpec::features, in the order of a sample.
struct FeatureUse {
  std::vector<size_t> labels, dense, slots;
};

/// An input reads the channel that has the name of its `top`. Those without one read "label" and "numerical"; sparse
/// inputs without one share the features of "categorical", in their order. Errors, in `problems`: channels that are not
/// there, whose features are of another number than the layer says, or have types that are no ids.
FeatureUse use_features(const FeatureSpec&, const DataSection&, const std::string& pointer, Problems&);

/// Completes a section with `feature_spec`: its format; the mappings "train" and, where there is one, "test";
/// slot_size_array from the cardinalities. A specification that does not exist yet is a
/// note, and the section is not checked against it.
void complete_feature_section(DataSection&, const std::string& pointer, Problems&);

/// Rules of a section whose format is FeatureSpec, beyond those.
void check_feature_section(const DataSection&, const std::string& pointer, Problems&);

}  // namespace hctr
