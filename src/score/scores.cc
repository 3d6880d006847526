#include "score/scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace hctr {

Scores::Scores(const MetricList& metrics, int64_t columns) : facts_(static_cast<size_t>(columns)), columns_(columns) {
  for (const Metric& metric : metrics.metrics) {
    if (!metric.type->measure) continue;
    auto& of_columns = measures_[metric.type->name];
    while (static_cast<int64_t>(of_columns.size()) < columns) of_columns.push_back(metric.type->measure());
  }
}

void Scores::add(View<const float, 2> predictions, View<const float, 2> labels,
                 std::span<const std::optional<int64_t>> groups, int64_t rows) {
  std::vector<float> column_predictions, column_labels;
  std::vector<std::optional<int64_t>> column_groups;
  for (int64_t c = 0; c < columns_; ++c) {
    column_predictions.clear();
    column_labels.clear();
    column_groups.clear();
    for (int64_t r = 0; r < rows; ++r)
      if (const float label = labels.row(r)[c]; label >= -0.5f) {
        column_predictions.push_back(predictions.row(r)[c]);
        column_labels.push_back(label);
        if (!groups.empty()) column_groups.push_back(groups[static_cast<size_t>(r)]);
      }
    const Measure::Samples samples{column_predictions, column_labels, column_groups};
    facts_[static_cast<size_t>(c)].add(samples);
    for (auto& [name, of_columns] : measures_) of_columns[static_cast<size_t>(c)]->add(samples);
  }
}

std::string Scores::state() {
  std::string all(reinterpret_cast<const char*>(facts_.data()), facts_.size() * sizeof(SampleFacts));
  for (auto& [name, of_columns] : measures_)
    for (const auto& measure : of_columns) {
      const std::string one = measure->state();
      const uint64_t bytes = one.size();
      all.append(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(one);
    }
  return all;
}

void Scores::merge(std::string_view state) {
  for (SampleFacts& facts : facts_) {
    SampleFacts others;
    HCTR_EXPECT(state.size() >= sizeof others, "the state to merge is too short: its scores are of other losses");
    std::memcpy(&others, state.data(), sizeof others);
    state.remove_prefix(sizeof others);
    facts.merge(others);
  }
  for (auto& [name, of_columns] : measures_)
    for (const auto& measure : of_columns) {
      uint64_t bytes = 0;
      HCTR_EXPECT(state.size() >= sizeof bytes, "the state to merge is too short: its scores are of other losses");
      std::memcpy(&bytes, state.data(), sizeof bytes);
      state.remove_prefix(sizeof bytes);
      measure->merge(state.substr(0, bytes));
      state.remove_prefix(bytes);
    }
}

std::map<std::string, double> Scores::values() {
  std::map<std::string, double> values;
  undefined_.clear();
  for (auto& [name, of_columns] : measures_) {
    double sum = 0;
    int defined = 0;
    for (const auto& measure : of_columns)
      if (const double value = measure->value(); !std::isnan(value)) {
        sum += value;
        ++defined;
      }
    values[name] = defined > 0 ? sum / defined : std::numeric_limits<double>::quiet_NaN();
    if (defined == 0) undefined_[name] = why_undefined(name);
  }
  return values;
}

std::string Scores::why_undefined(const std::string& metric) const {
  constexpr size_t kMostNamed = 3;
  std::vector<std::string> reasons;
  for (const SampleFacts& facts : facts_) reasons.push_back(hctr::why_undefined(*find_metric_type(metric), facts));
  if (std::count(reasons.begin(), reasons.end(), reasons.front()) == columns_)
    return cat(columns_ > 1 ? "of each label " : "", reasons.front());
  std::string text;
  for (size_t c = 0; c < std::min(reasons.size(), kMostNamed); ++c)
    text += cat(c > 0 ? "; " : "", "label ", c, ": ", reasons[c]);
  return text + (reasons.size() > kMostNamed ? "; ..." : "");
}

}  // namespace hctr
