// AUC and NDCG: metrics of samples ranked by prediction.
#include "metrics/metrics.h"
#include "metrics/ranking.h"

namespace hctr {
namespace {

template <double (Ranking::*kRead)()>
class RankingMeasure : public Measure {
 public:
  void add(const Samples& s) override { ranking_.add(s.predictions, s.labels); }
  double value() override { return (ranking_.*kRead)(); }
  std::string state() override { return ranking_.state(); }
  void merge(std::string_view state) override { ranking_.merge(state); }

 private:
  Ranking ranking_;
};

}  // namespace

MetricType auc() {
  return {.name = "AUC",
          .aliases = {},
          .better = MetricType::Better::higher,
          .largest = 1,
          .text =
              "area under the ROC curve: the probability that a sample of label 1 is predicted higher than one of "
              "label 0, ties counting one half. Exact up to 4 million distinct predictions, above that with an "
              "error below 5e-7",
          .measure = make_measure<RankingMeasure<&Ranking::area>>};
}

MetricType ndcg() {
  return {.name = "NDCG",
          .aliases = {},
          .better = MetricType::Better::higher,
          .largest = 1,
          .text =
              "sum of 1 / log2(rank + 1) over the samples of label 1, ranked by prediction, divided by its maximum; "
              "equal predictions share their ranks (K. Järvelin and J. Kekäläinen, TOIS 2002)",
          .measure = make_measure<RankingMeasure<&Ranking::normalized_gain>>};
}

}  // namespace hctr
