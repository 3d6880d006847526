// The best possible scores on generated data: those of a model that knows the true probabilities. Stored next to the
// evaluation set.
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
  double calibration = 0;   ///< mean probability / fraction of positives
  double positive_share = 0;
  int64_t samples = 0;
  /// With several labels: scores of each label. The members above are then their means.
  std::vector<BestPossible> labels;
};

/// Computes the scores. Shapes: probability [samples, labels], positive [samples, labels].
BestPossible best_possible(std::span<const double> probability, std::span<const bool> positive, int64_t labels);

/// `<eval_source>.truth.json`
fs::path truth_path(const fs::path& eval_source);
void write_best_possible(const fs::path& eval_source, const BestPossible&, const Json& made_with);
/// Reads the scores of an evaluation set; empty if their file does not exist. Errors: Error(data) if
/// write_best_possible() did not write the file.
std::optional<BestPossible> read_best_possible(const fs::path& eval_source);

}  // namespace hctr
