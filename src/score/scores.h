// Computes the metrics of one loss's predictions.
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
  /// Computes the metrics in `metrics` that need predictions. `columns`: number of labels.
  Scores(const MetricList& metrics, int64_t columns);

  bool empty() const { return measures_.empty(); }
  /// Adds the first `rows` rows. A label below -0.5 is missing: the label and its prediction are skipped. `groups`: one
  /// per row; empty if no metric needs groups.
  void add(View<const float, 2> predictions, View<const float, 2> labels,
           std::span<const std::optional<int64_t>> groups, int64_t rows);
  /// Serializes the state. merge() adds the state of another rank for the same loss.
  std::string state();
  void merge(std::string_view state);
  /// Values by metric name. With several labels, the mean over all labels with a defined metric; NaN if there are none.
  std::map<std::string, double> values();
  /// Properties of the first label's samples. Includes the samples of merged states.
  const SampleFacts& facts() const { return facts_.front(); }
  /// Why metrics were NaN in the last call of values(), by metric name.
  const std::map<std::string, std::string>& undefined() const { return undefined_; }

 private:
  std::string why_undefined(const std::string& metric) const;

  std::map<std::string, std::vector<std::unique_ptr<Measure>>> measures_;  // [metric][column]
  std::vector<SampleFacts> facts_;                                         // [column]
  std::map<std::string, std::string> undefined_;
  int64_t columns_;
};

}  // namespace hctr
