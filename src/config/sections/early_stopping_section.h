// The solver's "early_stopping" object: when training ends because a metric no longer improves.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.h"
#include "config/sections/metric_words.h"

namespace hctr {

struct EarlyStopping {
  bool given = false;  ///< without the object, training runs to its end
  std::string metric = "AUC";
  int64_t patience = 3;

  /// Null without the object.
  const MetricType* type() const { return given ? find_metric_type(metric) : nullptr; }
};
Schema<EarlyStopping> early_stopping_schema();

}  // namespace hctr
