// The metrics of one loss's predictions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/sections/solver_section.h"
#include "core/device/tensor.h"
#include "metrics/undefined.h"

namespace hctr {

class Scores {
 public:
  /// Computes those of `metrics` that need predictions, for each of `columns` labels.
  Scores(const MetricList& metrics, int64_t columns);

  bool empty() const { return measures_.empty(); }
  /// Adds the first `rows` rows. Labels below -0.5 mean "missing" and are skipped with their predictions. `groups`: one
  /// per row, or empty when no metric needs groups.
  void add(View<const float, 2> predictions, View<const float, 2> labels,
           std::span<const std::optional<int64_t>> groups, int64_t rows);
  /// The state so far as bytes, and adding the state of another rank for the same loss.
  std::string state();
  void merge(std::string_view state);
  /// By metric name. With several labels, the mean over those where the metric is defined; NaN when there are none.
  std::map<std::string, double> values();
  /// Samples of the first label, merged ones included.
  const SampleFacts& facts() const { return facts_.front(); }
  /// The reason of each metric that was NaN at the last values().
  const std::map<std::string, std::string>& undefined() const { return undefined_; }

 private:
  std::string why_undefined(const std::string& metric) const;

  std::map<std::string, std::vector<std::unique_ptr<Measure>>> measures_;  // [metric][column]
  std::vector<SampleFacts> facts_;                                         // [column]
  std::map<std::string, std::string> undefined_;
  int64_t columns_;
};

}  // namespace hctr
