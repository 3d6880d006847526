// HitRate: the precision of predictions above 0.8.
#include <cmath>
#include <limits>

#include "metrics/sums_measure.h"

namespace hctr {
namespace {

struct HitRate {
  double chosen = 0, hits = 0;
  void add(double p, double y) {
    if (std::isnan(p)) hits = std::numeric_limits<double>::quiet_NaN();
    if (p <= static_cast<double>(0.8f)) return;  // compares with 0.8f, because predictions are floats
    chosen += 1;
    hits += y > 0.5 ? 1 : 0;
  }
  double value() const { return chosen > 0 ? hits / chosen : std::numeric_limits<double>::quiet_NaN(); }
};

}  // namespace

MetricType hit_rate() {
  return {.name = "HitRate",
          .aliases = {},
          .better = MetricType::Better::higher,
          .largest = 1,
          .text = "fraction of samples with label 1 among all samples with a prediction above 0.8",
          .of_labels = false,
          .undefined = "no prediction is above 0.8",
          .measure = make_measure<SumsMeasure<HitRate>>};
}

}  // namespace hctr
