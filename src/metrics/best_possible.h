// The scores of a model that knows the hidden model of generated data, stored next to the evaluation set.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/files.h"

namespace hctr {

struct BestPossible {
  double auc = 0;
  double average_loss = 0;  ///< mean cross entropy
  double calibration = 0;   ///< mean probability / share of positives
  double positive_share = 0;
  int64_t samples = 0;
  /// scores of each label if there are several; then the scores above are their means
  std::vector<BestPossible> labels;
};

/// Shapes: probability [samples, labels], positive [samples, labels].
BestPossible best_possible(std::span<const double> probability, std::span<const bool> positive, int64_t labels);

/// `<eval_source>.truth.json`
fs::path truth_path(const fs::path& eval_source);
void write_best_possible(const fs::path& eval_source, const BestPossible&, const Json& made_with);
/// Empty when the set has no such file. Errors: Error(data) when the file is not one of ours.
std::optional<BestPossible> read_best_possible(const fs::path& eval_source);

}  // namespace hctr
