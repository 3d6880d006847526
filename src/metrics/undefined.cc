#include "metrics/undefined.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/progress.h"

namespace hctr {

void SampleFacts::add(const Measure::Samples& of) {
  samples += static_cast<int64_t>(of.labels.size());
  for (const float prediction : of.predictions) not_numbers += std::isnan(prediction);
  for (const auto& group : of.groups) without_group += !group;
  for (const float label : of.labels) {
    lowest = std::min(lowest, label);
    highest = std::max(highest, label);
  }
}

void SampleFacts::merge(const SampleFacts& other) {
  samples += other.samples;
  not_numbers += other.not_numbers;
  without_group += other.without_group;
  lowest = std::min(lowest, other.lowest);
  highest = std::max(highest, other.highest);
}

std::string why_undefined(const MetricType& type, const SampleFacts& facts) {
  constexpr float kPositive = 0.5f;  // labels above 0.5 are positive
  if (facts.samples == 0) return "no evaluation sample has a label";
  if (facts.not_numbers > 0)
    return cat(facts.not_numbers, " of ", facts.samples,
               facts.not_numbers == 1 ? " predictions is not a number" : " predictions are not numbers");
  if (type.of_groups && facts.without_group == facts.samples)
    return "no evaluation sample has a group: the slot named by \"group_by\" is always empty";
  const bool one_class = facts.lowest > kPositive || facts.highest <= kPositive;
  if (one_class && type.of_labels) {
    const std::string all =
        facts.samples == 1 ? "the only evaluation sample has" : cat("all ", facts.samples, " evaluation samples have");
    return facts.lowest == facts.highest ? cat(all, " label ", facts.lowest)
                                         : cat(all, " labels ", facts.lowest > kPositive ? "above" : "up to", " 0.5");
  }
  return type.undefined.empty() ? "the metric's value is not a number" : type.undefined;
}

std::string metric_text(const std::string& name, double value, const std::map<std::string, std::string>& undefined) {
  if (!std::isnan(value)) return formatted("%.6f", value);
  const auto why = undefined.find(name);
  return why == undefined.end() ? "not defined" : cat("not defined: ", why->second);
}

}  // namespace hctr
