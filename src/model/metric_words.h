// The words of eval_metrics, and where the groups of GroupedAUC come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "metrics/metrics.h"

namespace hctr {

/// A metric that evaluations measure, with the value that ends training when reached.
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

/// Where the group of a sample comes from.
struct GroupBy {
  bool given = false;
  std::string input;
  int64_t slot = 0;
};
Schema<GroupBy> group_schema();

/// Rules of both: metrics of groups need groups.
void check_metrics(const MetricList&, const GroupBy&, const std::string& pointer, Problems&);

}  // namespace hctr
