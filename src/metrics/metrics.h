// What can be measured of predictions against labels: one table of metrics, each with its word, its better side and its
// formula.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Takes in the samples of one label, batch by batch, in bounded memory. Sums are in double and in the order of the
/// samples.
class Measure {
 public:
  struct Samples {
    std::span<const float> predictions, labels;  ///< of equal size
    std::span<const std::optional<int64_t>>
        groups{};  ///< as many, where the metric is one of groups; none: in no group
  };
  virtual ~Measure() = default;
  virtual void add(const Samples&) = 0;
  /// NaN where it is not defined, and when a prediction is NaN.
  virtual double value() = 0;
  /// Everything taken in so far, and adding that of another measure of the same metric: of samples measured elsewhere.
  virtual std::string state() = 0;
  virtual void merge(std::string_view state) = 0;
};

struct MetricType {
  enum class Better { higher, lower, near_one };

  std::string name;
  std::vector<std::string> aliases;
  Better better;
  double largest;                         ///< the largest value it can have
  std::string text;                       ///< what it is, for the manual
  bool of_groups;                         ///< whether samples need groups
  std::unique_ptr<Measure> (*measure)();  ///< null: the mean of the model's own loss, which needs no predictions

  /// Whether `value` is `threshold` or better. NaN is not.
  bool reached(double value, double threshold) const {
    return better == Better::higher ? value >= threshold : value <= threshold;
  }
};

/// Every metric, in the order of the manual.
const std::vector<MetricType>& metric_types();
/// By name or alias; null when there is none.
const MetricType* find_metric_type(const std::string& word);

}  // namespace hctr
