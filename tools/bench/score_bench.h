// Scoring with a saved model: from the caller's memory to the caller's memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench_report.h"
#include "hctr/model.h"

namespace hctr::bench {

struct ScoreCase {
  std::string model;   ///< as LoadOptions has it
  std::string config;  ///< empty: that of the model
  std::vector<int64_t> batches = {1, 64, 4096, 65536};
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 1;
  double seconds = 1;  ///< to measure each batch for
};

/// For each batch the median time of a call of Model::score() with samples of the training data, and the samples a
/// second. Errors: those of Model and of reading.
void bench_score(const ScoreCase&, Report&);

}  // namespace hctr::bench
