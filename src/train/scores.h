// What an evaluation gathers for one loss: every prediction and its label, and the area under the curve they give.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/tensor.h"

namespace hctr {

/// Predictions and labels of one task, column by column.
class Scores {
 public:
  explicit Scores(int64_t columns) : predictions_(static_cast<size_t>(columns)), labels_(static_cast<size_t>(columns)) {}

  void clear();
  /// Adds the first `rows` rows of both. Labels below -0.5 mean "missing" and are left out with their predictions.
  void add(View<const float, 2> predictions, View<const float, 2> labels, int64_t rows);
  /// Of one column; of several, the mean over those where it is defined. NaN when it is defined for none.
  double auc() const;

 private:
  std::vector<std::vector<float>> predictions_, labels_;  // [column][sample]
};

}  // namespace hctr
