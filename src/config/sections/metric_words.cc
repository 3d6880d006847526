#include "config/sections/metric_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/sections/metric_hint.h"

namespace hctr {
namespace {

/// Reads a metric such as "AUC" or "AUC:0.8".
Misfit read_metric(const Json& value, Metric& out) {
  if (!value.string()) return "a metric, a string";
  const std::string& word = *value.string();
  const size_t colon = word.find(':');
  const std::string name = word.substr(0, colon);
  out.type = find_metric_type(name);
  if (!out.type) return cat("a metric", metric_hint(name));
  if (colon == word.npos) return {};
  if (out.type->better == MetricType::Better::near_one)
    return cat(name, " without a threshold: the best value is 1, so no threshold can end training");
  double threshold = 0;
  const char* const number = word.data() + colon + 1;
  const char* const last = word.data() + word.size();
  const auto [end, error] = std::from_chars(number, last, threshold);
  const Range range = std::isinf(out.type->largest) ? at_least(0) : between(0, out.type->largest);
  if (error != std::errc() || end != last || !range.holds(threshold))
    return cat(name, ":<threshold>, a number, ", range.text());
  out.stop_at = threshold;
  return {};
}

}  // namespace

Misfit read_value(const Json& value, const Range&, MetricList& out) {
  const Json::Array words = value.array() ? *value.array() : Json::Array{value};
  out.metrics.clear();
  for (size_t i = 0; i < words.size(); ++i) {
    Metric metric{};
    if (Misfit misfit = read_metric(words[i], metric); !misfit.empty()) {
      if (value.array()) {
        misfit.pointer = cat("/", i);
        misfit.found = words[i].kind();
      }
      return misfit;
    }
    out.metrics.push_back(metric);
  }
  return {};
}

Json to_json(const MetricList& list) {
  Json words(Json::Array{});
  for (const Metric& metric : list.metrics) words.add(metric.word());
  return words;
}

Schema<GroupBy> group_schema() {
  return Schema<GroupBy>("group_by")
      .need("input", &GroupBy::input, "name (top) of the sparse input that contains the group of a sample")
      .opt("slot", &GroupBy::slot,
           "number of the slot that contains the group, starting at 0. The slot's first value is the group; a "
           "sample without a value has no group",
           at_least(0))
      .together([](GroupBy& group, const std::string&, Problems&) { group.given = true; });
}

void check_measured(const std::string& name, const MetricList& list, const std::string& pointer, Problems& problems) {
  const MetricType* type = find_metric_type(name);
  std::vector<std::string> names;
  for (const Metric& metric : list.metrics) {
    if (metric.type == type) return;
    names.push_back(metric.type->name);
  }
  if (!type) return problems.error(pointer, cat("expected a metric", metric_hint(name), ", found \"", name, "\""));
  problems.error(pointer, cat("expected a metric of \"eval_metrics\" (", one_of(names), "), found \"", name, "\""));
}

void check_metrics(const MetricList& list, const GroupBy& group_by, const std::string& pointer, Problems& problems) {
  const auto& metrics = list.metrics;
  const auto grouped =
      std::find_if(metrics.begin(), metrics.end(), [](const Metric& metric) { return metric.type->of_groups; });
  if (grouped != metrics.end() && !group_by.given)
    problems.error(cat(pointer, "/eval_metrics/", grouped - metrics.begin()),
                   cat(grouped->type->name,
                       " needs \"group_by\" in the solver: the sparse input that contains the group of a sample"));
  if (grouped == metrics.end() && group_by.given)
    problems.note(pointer + "/group_by", "has no effect: no metric in eval_metrics uses groups");
}

}  // namespace hctr
