// The solver's "checkpoint" object: when and where checkpoints are saved, and which of them are kept.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.h"
#include "config/sections/metric_words.h"

namespace hctr {

struct CheckpointSection {
  bool given = false;  ///< whether the config has the object; false: no checkpoints
  int64_t every = 0;
  double every_minutes = 0;
  int64_t whole_every = 1;
  int64_t keep_last = 2;
  std::string keep_best;
  std::string folder = "ckpt";

  /// The metric named by keep_best; null if keep_best is empty.
  const MetricType* best() const { return keep_best.empty() ? nullptr : find_metric_type(keep_best); }
};
Schema<CheckpointSection> checkpoint_schema();

}  // namespace hctr
