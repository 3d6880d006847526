// Metrics of predictions against labels. Each is a MetricType with its name, its better direction and its measure; the
// catalog lists them. docs/add_a_metric.md shows how to add one.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Computes a metric of one label from samples that arrive batch by batch, in bounded memory. Sums are in double and in
/// the order of the samples.
class Measure {
 public:
  struct Samples {
    std::span<const float> predictions, labels;  ///< spans of equal size
    std::span<const std::optional<int64_t>>
        groups{};  ///< of equal size, for metrics of groups alone; an empty optional is a sample without a group
  };
  virtual ~Measure() = default;
  virtual void add(const Samples&) = 0;
  /// NaN where the metric is not defined, and where a prediction is NaN.
  virtual double value() = 0;
  /// The state as bytes, for another rank.
  virtual std::string state() = 0;
  /// Adds the samples of another measure of the same metric, from its state().
  virtual void merge(std::string_view state) = 0;
};

struct MetricType {
  enum class Better { higher, lower, near_one };

  std::string name;
  std::vector<std::string> aliases;
  Better better;
  double largest = std::numeric_limits<double>::infinity();  ///< the largest possible value
  std::string text;                                          ///< text of the manual
  bool of_groups = false;                                    ///< whether samples need groups
  bool of_labels = true;                                     ///< whether it may need labels of both classes
  /// Why it has no value, if neither labels nor predictions explain it.
  std::string undefined = {};
  std::unique_ptr<Measure> (*measure)();  ///< null: the mean of the model's own loss, which needs no predictions

  /// Whether `value` is `threshold` or better. NaN is not.
  bool reached(double value, double threshold) const {
    return better == Better::higher ? value >= threshold : value <= threshold;
  }
  /// Whether `value` is better than the best one so far, if any. NaN and infinity are not.
  bool improves(double value, const std::optional<double>& best) const {
    if (!std::isfinite(value)) return false;
    if (!best) return true;
    if (better == Better::near_one) return std::abs(value - 1) < std::abs(*best - 1);
    return better == Better::higher ? value > *best : value < *best;
  }
};

template <class M>
std::unique_ptr<Measure> make_measure() {
  return std::make_unique<M>();
}

/// All metrics, in the order of the manual.
const std::vector<MetricType>& metric_types();
/// By name or alias; null when there is none.
const MetricType* find_metric_type(const std::string& word);

}  // namespace hctr
