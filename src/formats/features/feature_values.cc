#include "formats/features/feature_values.h"

#include <cmath>

namespace hctr {

std::string feature_misfit(const FeatureColumn& feature, double value) {
  if (feature.cardinality && !(value >= 0 && value < static_cast<double>(*feature.cardinality)))
    return cat("feature ", feature.name, ": ", value, " is not an id below its cardinality of ", *feature.cardinality);
  if (!std::isnan(value) && (value < least_of(feature.type) || value > most_of(feature.type)))
    return cat("feature ", feature.name, ": ", value, " does not fit its type ", name_of(feature.type));
  return {};
}

}  // namespace hctr
