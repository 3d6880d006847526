// Measures scoring with a saved model, from the caller's memory to the caller's memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench_report.h"
#include "hctr/model.h"

namespace hctr::bench {

struct ScoreCase {
  std::string model;   ///< as LoadOptions::model
  std::string config;  ///< empty: the config saved with the model
  std::vector<int64_t> batches = {1, 64, 4096, 65536};
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 1;
  double seconds = 1;  ///< measuring time per batch size
};

/// Reports for each batch size the median time of Model::score() on samples of the training data, and the samples per
/// second. Errors: those of Model and of reading.
void bench_score(const ScoreCase&, Report&);

}  // namespace hctr::bench
