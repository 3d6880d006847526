// The solver's "checkpoint" object: when checkpoints are saved, which are kept, and where.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.h"
#include "config/sections/metric_words.h"

namespace hctr {

struct CheckpointSection {
  bool given = false;  ///< without the object no checkpoints are saved
  int64_t every = 0;
  double every_minutes = 0;
  int64_t whole_every = 1;
  int64_t keep_last = 2;
  std::string keep_best;
  std::string folder = "ckpt";

  /// The metric of keep_best; null if there is none.
  const MetricType* best() const { return keep_best.empty() ? nullptr : find_metric_type(keep_best); }
};
Schema<CheckpointSection> checkpoint_schema();

}  // namespace hctr
