// Which rows train and which are held out for evaluation.
#pragma once

#include <cstdint>
#include <limits>

#include "base/random.h"

namespace hctr {

struct Holdout {
  enum class By { nothing, position, random, column };
  By by = By::nothing;
  double share = 0;   ///< position: of the rows, the last ones; random: of the rows, each by a draw of its own
  uint64_t seed = 1;  ///< of the draws
  double from = 0;    ///< column: rows whose value is `from` or more

  int64_t train_rows = std::numeric_limits<int64_t>::max();  ///< position: set once the rows are counted

  /// `index` counts all rows of the input, bad ones among them; `value` is that of the column.
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
