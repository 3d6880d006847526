// Decides which rows are for training and which rows are for evaluation.
#pragma once

#include <cstdint>
#include <limits>

#include "core/base/random.h"

namespace hctr {

struct Holdout {
  enum class By { nothing, position, random, column };
  By by = By::nothing;
  /// for position: fraction of the rows, at the end, that is held out; for random: probability that a row is held out
  double share = 0;
  uint64_t seed = 1;  ///< seed of the random draws
  double from = 0;    ///< for column: rows whose value is at least `from` are held out

  /// for position: number of training rows; set after all rows are counted
  int64_t train_rows = std::numeric_limits<int64_t>::max();

  /// Whether a row is for training. `index`: number of the row in the input, including bad rows. `value`: the row's
  /// value in the split column.
  bool trains(int64_t index, double value) const {
    switch (by) {
      case By::position:
        return index < train_rows;
      case By::random:
        return static_cast<double>(mix64(mix64(seed) ^ static_cast<uint64_t>(index)) >> 11) * 0x1p-53 >= share;
      case By::column:
        return value < from;
      case By::nothing:
        break;
    }
    return true;
  }
};

}  // namespace hctr
