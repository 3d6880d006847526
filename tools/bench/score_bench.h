// Measures scoring with a saved model, from the caller's memory to the caller's memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench_report.h"
#include "hctr/model.h"
#include "infer/session_rules.h"

namespace hctr::bench {

struct ScoreCase {
  std::string model;                 ///< as LoadOptions::model
  std::string config;                ///< empty: the config saved with the model
  std::vector<std::string> changes;  ///< as LoadOptions::changes
  std::vector<int64_t> batches = {1, 64, 4096, 65536};
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 1;
  double seconds = 1;     ///< measuring time per batch size
  int64_t few_rows = -1;  ///< batches up to this size use the GEMM for few samples; -1: as in `rules`
  SessionRules rules{};
};

/// Switches off one way to score faster: few_rows, kernel_copies, polling, pieces or predictions_only on a GPU, or
/// packed_weights on a CPU. Errors: Error(usage) for another word.
void switch_off(SessionRules&, const std::string& way);

/// Reports for each batch size the median time of Model::score() on samples of the training data, the samples per
/// second, and the processor time of all threads for a call. Errors: those of Model and of reading.
void bench_score(const ScoreCase&, Report&);

}  // namespace hctr::bench
