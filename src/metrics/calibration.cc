// Calibration: the mean prediction divided by the mean label.
#include <limits>

#include "metrics/sums_measure.h"

namespace hctr {
namespace {

struct Calibration {
  double predicted = 0, labels = 0;
  void add(double p, double y) {
    predicted += p;
    labels += y;
  }
  double value() const { return labels > 0 ? predicted / labels : std::numeric_limits<double>::quiet_NaN(); }
};

}  // namespace

MetricType calibration() {
  return {.name = "Calibration",
          .aliases = {},
          .better = MetricType::Better::near_one,
          .text = "mean prediction divided by mean label; 1 if as many clicks occur as predicted",
          .measure = make_measure<SumsMeasure<Calibration>>};
}

}  // namespace hctr
