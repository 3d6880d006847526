// NormalizedEntropy: the log loss divided by the log loss of a constant prediction.
#include <algorithm>
#include <cmath>
#include <limits>

#include "metrics/sums_measure.h"

namespace hctr {
namespace {

double entropy(double p, double y) { return -(y * std::log(p) + (1 - y) * std::log(1 - p)); }

/// The log loss divided by the log loss of predicting the mean label for all samples. Predictions are clamped to
/// [1e-15, 1 - 1e-15].
struct NormalizedEntropy {
  double loss = 0, labels = 0, samples = 0;
  void add(double p, double y) {
    constexpr double kEdge = 1e-15;
    loss += entropy(std::clamp(p, kEdge, 1 - kEdge), y);
    labels += y;
    samples += 1;
  }
  double value() const {
    const double rate = samples > 0 ? labels / samples : 0;
    return rate > 0 && rate < 1 ? loss / samples / entropy(rate, rate) : std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace

MetricType normalized_entropy() {
  return {.name = "NormalizedEntropy",
          .aliases = {},
          .better = MetricType::Better::lower,
          .text =
              "log loss divided by the log loss of always predicting the mean label; below 1 if the model has "
              "learned (X. He et al., ADKDD 2014, equation 3)",
          .measure = make_measure<SumsMeasure<NormalizedEntropy>>};
}

}  // namespace hctr
