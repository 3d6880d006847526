// Metrics that are a function of a few sums over all samples.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/expect.h"
#include "metrics/metrics.h"

namespace hctr {

/// A Measure that adds up samples in `Sums`. Every member of `Sums` is a double, a sum over the samples.
/// add(prediction, label) adds a sample; value() is the metric. Measures are merged by adding their members.
template <class Sums>
class SumsMeasure : public Measure {
 public:
  void add(const Samples& s) override {
    for (size_t i = 0; i < s.labels.size(); ++i)
      sums_.add(static_cast<double>(s.predictions[i]), static_cast<double>(s.labels[i]));
  }
  double value() override { return sums_.value(); }
  std::string state() override { return {reinterpret_cast<const char*>(&sums_), sizeof sums_}; }
  void merge(std::string_view state) override {
    constexpr size_t kSums = sizeof(Sums) / sizeof(double);
    static_assert(std::is_trivially_copyable_v<Sums> && kSums * sizeof(double) == sizeof(Sums));
    HCTR_EXPECT(state.size() == sizeof(Sums), "sums of ", state.size(), " bytes");
    std::array<double, kSums> mine, others;
    std::memcpy(mine.data(), &sums_, sizeof sums_);
    std::memcpy(others.data(), state.data(), sizeof sums_);
    for (size_t i = 0; i < kSums; ++i) mine[i] += others[i];
    std::memcpy(static_cast<void*>(&sums_), mine.data(), sizeof sums_);
  }

 private:
  Sums sums_;
};

}  // namespace hctr
