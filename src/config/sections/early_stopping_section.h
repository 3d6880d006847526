// The solver's "early_stopping" object: ends training when a metric no longer improves.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.h"
#include "config/sections/metric_words.h"

namespace hctr {

struct EarlyStopping {
  bool given = false;  ///< whether the config has the object; false: no early stopping
  std::string metric = "AUC";
  int64_t patience = 3;

  /// The metric to watch; null if the config lacks the object.
  const MetricType* type() const { return given ? find_metric_type(metric) : nullptr; }
};
Schema<EarlyStopping> early_stopping_schema();

}  // namespace hctr
