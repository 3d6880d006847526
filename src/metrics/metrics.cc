#include "metrics/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "metrics/grouped_auc.h"
#include "metrics/ranking.h"

namespace hctr {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double entropy(double p, double y) { return -(y * std::log(p) + (1 - y) * std::log(1 - p)); }

/// The log loss over that of always predicting the mean label; predictions are kept 1e-15 away from 0 and 1.
struct NormalizedEntropy {
  double loss = 0, labels = 0, samples = 0;
  void add(double p, double y) {
    constexpr double kEdge = 1e-15;
    loss += entropy(std::clamp(p, kEdge, 1 - kEdge), y);
    labels += y;
    samples += 1;
  }
  double value() const {
    const double rate = samples > 0 ? labels / samples : 0;
    return rate > 0 && rate < 1 ? loss / samples / entropy(rate, rate) : kNaN;
  }
};

struct Calibration {
  double predicted = 0, labels = 0;
  void add(double p, double y) {
    predicted += p;
    labels += y;
  }
  double value() const { return labels > 0 ? predicted / labels : kNaN; }
};

struct HitRate {
  double chosen = 0, hits = 0;
  void add(double p, double y) {
    if (std::isnan(p)) hits = kNaN;
    if (p <= static_cast<double>(0.8f)) return;  // predictions are float
    chosen += 1;
    hits += y > 0.5 ? 1 : 0;
  }
  double value() const { return chosen > 0 ? hits / chosen : kNaN; }
};

struct Smape {
  double total = 0, samples = 0;
  void add(double p, double y) {
    if (p != 0 || y != 0) total += std::abs(p - y) / ((std::abs(p) + std::abs(y)) / 2);
    samples += 1;
  }
  double value() const { return samples > 0 ? total / samples : kNaN; }
};

template <class Sums>
class OfSums : public Measure {
 public:
  void add(const Samples& s) override {
    for (size_t i = 0; i < s.labels.size(); ++i)
      sums_.add(static_cast<double>(s.predictions[i]), static_cast<double>(s.labels[i]));
  }
  double value() override { return sums_.value(); }
  std::string state() override { return {reinterpret_cast<const char*>(&sums_), sizeof sums_}; }
  /// All that such metrics keep are sums.
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

template <double (Ranking::*kRead)()>
class OfRanking : public Measure {
 public:
  void add(const Samples& s) override { ranking_.add(s.predictions, s.labels); }
  double value() override { return (ranking_.*kRead)(); }
  std::string state() override { return ranking_.state(); }
  void merge(std::string_view state) override { ranking_.merge(state); }

 private:
  Ranking ranking_;
};

class OfGroups : public Measure {
 public:
  void add(const Samples& s) override { groups_.add(s.predictions, s.labels, s.groups); }
  double value() override { return groups_.value(); }
  std::string state() override { return groups_.state(); }
  void merge(std::string_view state) override { groups_.merge(state); }

 private:
  GroupedAuc groups_;
};

template <class M>
std::unique_ptr<Measure> make() {
  return std::make_unique<M>();
}

}  // namespace

const std::vector<MetricType>& metric_types() {
  using enum MetricType::Better;
  constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  static const std::vector<MetricType> types = {
      {"AUC",
       {},
       higher,
       1,
       "area under the ROC curve: the probability that a sample of label 1 is predicted higher than one of label 0, "
       "ties counting one half. Exact up "
       "to 4 million different predictions, beyond that within 5e-7",
       false,
       make<OfRanking<&Ranking::area>>},
      {"AverageLoss",
       {"LogLoss"},
       lower,
       kNoEnd,
       "the model's loss, penalties included, averaged over the samples",
       false,
       nullptr},
      {"NormalizedEntropy",
       {},
       lower,
       kNoEnd,
       "log loss over that of always predicting the mean label: below 1 something was learned (X. He et al., ADKDD "
       "2014, equation 3)",
       false,
       make<OfSums<NormalizedEntropy>>},
      {"Calibration",
       {},
       near_one,
       kNoEnd,
       "mean prediction over mean label: 1 when as many clicks come as were predicted",
       false,
       make<OfSums<Calibration>>},
      {"HitRate",
       {},
       higher,
       1,
       "among the samples predicted above 0.8, the share of label 1",
       false,
       make<OfSums<HitRate>>},
      {"GroupedAUC",
       {},
       higher,
       1,
       "the mean of the AUCs inside each group of samples, weighted by the group's samples; groups of one label alone "
       "are left out, and samples "
       "without a group (H. Zhu et al., KDD 2017, equation 8). `group_by` says what a group is. Exact up to 8 million "
       "samples, beyond that of a "
       "share of the groups",
       true,
       make<OfGroups>},
      {"NDCG",
       {},
       higher,
       1,
       "sum of 1 / log2(rank + 1) over the samples of label 1, ranked by prediction, over the largest it could be; "
       "equal predictions share their ranks "
       "(K. Järvelin and J. Kekäläinen, TOIS 2002)",
       false,
       make<OfRanking<&Ranking::normalized_gain>>},
      {"SMAPE",
       {},
       lower,
       2,
       "mean of abs(p - y) / ((abs(p) + abs(y)) / 2), p the prediction and y the label, from 0 to 2; 0 where both are "
       "0",
       false,
       make<OfSums<Smape>>},
  };
  return types;
}

const MetricType* find_metric_type(const std::string& word) {
  for (const MetricType& type : metric_types())
    if (type.name == word || std::find(type.aliases.begin(), type.aliases.end(), word) != type.aliases.end())
      return &type;
  return nullptr;
}

}  // namespace hctr
