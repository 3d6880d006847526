// Explains why a metric is undefined for a set of samples.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "metrics/metrics.h"

namespace hctr {

/// Properties of samples that decide whether their metrics are defined.
struct SampleFacts {
  int64_t samples = 0, not_numbers = 0;                                      ///< not_numbers: predictions that are NaN
  int64_t without_group = 0;                                                 ///< samples without a required group
  float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;  ///< range of the labels

  void add(const Measure::Samples&);
  void merge(const SampleFacts&);
};

/// The reason why a metric is NaN, such as "all 100 evaluation samples have label 0".
std::string why_undefined(const MetricType&, const SampleFacts&);

/// A metric's value as text: "0.712345", or "not defined: " with the reason from `undefined`, if known.
std::string metric_text(const std::string& name, double value, const std::map<std::string, std::string>& undefined);

}  // namespace hctr
