// Metrics of predictions against labels. Each metric is a MetricType with its name, its better direction and its
// Measure; the catalog lists all. docs/add_a_metric.md shows how to add a metric.
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

/// Computes a metric of one label from batches of samples, in bounded memory. Sums are doubles and are added in the
/// order of the samples.
class Measure {
 public:
  struct Samples {
    std::span<const float> predictions, labels;  ///< spans of equal size
    /// Group of each sample; an empty optional: no group. Set only for metrics of groups.
    std::span<const std::optional<int64_t>> groups{};
  };
  virtual ~Measure() = default;
  virtual void add(const Samples&) = 0;
  /// The metric's value; NaN if undefined, or if a prediction is NaN.
  virtual double value() = 0;
  /// Serializes the state for another rank.
  virtual std::string state() = 0;
  /// Adds the samples of another Measure of the same metric, from its state().
  virtual void merge(std::string_view state) = 0;
};

struct MetricType {
  enum class Better { higher, lower, near_one };

  std::string name;
  std::vector<std::string> aliases;
  Better better;
  double largest = std::numeric_limits<double>::infinity();  ///< the largest possible value
  std::string text;                                          ///< text for the manual
  bool of_groups = false;                                    ///< whether samples need groups
  /// whether the metric may be undefined if all labels are of one class
  bool of_labels = true;
  /// The reason to report for an undefined value that neither the labels nor the predictions explain.
  std::string undefined = {};
  std::unique_ptr<Measure> (*measure)();  ///< null for the mean of the model's own loss, which needs no predictions

  /// Whether `value` is at least as good as `threshold`; false for NaN.
  bool reached(double value, double threshold) const {
    return better == Better::higher ? value >= threshold : value <= threshold;
  }
  /// Whether `value` is better than `best`, the best value so far; false for NaN and infinity.
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
/// Finds a metric by name or alias; null if unknown.
const MetricType* find_metric_type(const std::string& word);

}  // namespace hctr
