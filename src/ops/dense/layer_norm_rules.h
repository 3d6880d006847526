// The sums over rows of ops/dense/layer_norm.h, shared by every device.
#pragma once

#include "ops/common/columns.h"
#include "ops/common/last_rows.h"

namespace hctr::ops {

template <class T>
struct LayerNormWeightSums {
  LastRows<const T> x, dy;
  const Acc<T>* stats;
  HCTR_HD Pair<Acc<T>> operator()(int64_t r, int64_t j) const {
    const auto g = static_cast<Acc<T>>(dy.row(r)[j]);
    return {g, g * (static_cast<Acc<T>>(x.row(r)[j]) - stats[2 * r]) * stats[2 * r + 1]};
  }
};

}  // namespace hctr::ops
