// Why a metric has no value: the property that its samples lack.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "metrics/metrics.h"

namespace hctr {

/// Facts that decide whether metrics of these samples are defined.
struct SampleFacts {
  int64_t samples = 0, not_numbers = 0;                                      ///< not_numbers: predictions that are NaN
  int64_t without_group = 0;                                                 ///< where groups are wanted
  float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;  ///< range of the labels

  void add(const Measure::Samples&);
  void merge(const SampleFacts&);
};

/// "all 100 evaluation samples have label 0", of a metric whose value is NaN.
std::string why_undefined(const MetricType&, const SampleFacts&);

/// The value of a metric for people: "0.712345", or "not defined: " with the reason, by name, where one is known.
std::string metric_text(const std::string& name, double value, const std::map<std::string, std::string>& undefined);

}  // namespace hctr
