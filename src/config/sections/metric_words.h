// The entries of "eval_metrics", and the slot that defines the groups of GroupedAUC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/base/expect.h"
#include "metrics/metrics.h"

namespace hctr {

/// A metric to measure, and optionally the value at which training stops.
struct Metric {
  const MetricType* type;
  std::optional<double> stop_at;
  std::string word() const { return stop_at ? cat(type->name, ":", *stop_at) : type->name; }
};
struct MetricList {
  std::vector<Metric> metrics = {{find_metric_type("AUC"), {}}, {find_metric_type("AverageLoss"), {}}};
};
Misfit read_value(const Json& value, const Range&, MetricList& out);
Json to_json(const MetricList&);
template <>
struct TypeWord<MetricList> {
  static std::string text() { return "array of metrics"; }
};

/// The sparse input and slot whose first key identifies a sample's group.
struct GroupBy {
  bool given = false;
  std::string input;
  int64_t slot = 0;
};
Schema<GroupBy> group_schema();

/// Checks that "eval_metrics" contains the metric `name`, which the field at `pointer` needs.
void check_measured(const std::string& name, const MetricList&, const std::string& pointer, Problems&);
/// Checks that "group_by" is set if a metric needs groups.
void check_metrics(const MetricList&, const GroupBy&, const std::string& pointer, Problems&);

}  // namespace hctr
