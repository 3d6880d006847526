// SMAPE: the symmetric mean absolute percentage error.
#include <cmath>
#include <limits>

#include "metrics/sums_measure.h"

namespace hctr {
namespace {

struct Smape {
  double total = 0, samples = 0;
  void add(double p, double y) {
    if (p != 0 || y != 0) total += std::abs(p - y) / ((std::abs(p) + std::abs(y)) / 2);
    samples += 1;
  }
  double value() const { return samples > 0 ? total / samples : std::numeric_limits<double>::quiet_NaN(); }
};

}  // namespace

MetricType smape() {
  return {.name = "SMAPE",
          .aliases = {},
          .better = MetricType::Better::lower,
          .largest = 2,
          .text =
              "mean of abs(p - y) / ((abs(p) + abs(y)) / 2), p the prediction and y the label, from 0 to 2; 0 where "
              "both are 0",
          .of_labels = false,
          .measure = make_measure<SumsMeasure<Smape>>};
}

}  // namespace hctr
