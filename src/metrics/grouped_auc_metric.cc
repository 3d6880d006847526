// GroupedAUC: the mean AUC over groups of samples.
#include "metrics/grouped_auc.h"
#include "metrics/metrics.h"

namespace hctr {
namespace {

class GroupedAucMeasure : public Measure {
 public:
  void add(const Samples& s) override { groups_.add(s.predictions, s.labels, s.groups); }
  double value() override { return groups_.value(); }
  std::string state() override { return groups_.state(); }
  void merge(std::string_view state) override { groups_.merge(state); }

 private:
  GroupedAuc groups_;
};

}  // namespace

MetricType grouped_auc() {
  return {.name = "GroupedAUC",
          .aliases = {},
          .better = MetricType::Better::higher,
          .largest = 1,
          .text =
              "the mean of the AUCs inside each group of samples, weighted by the group's number of samples; excludes "
              "groups with only one label, and samples without a group (H. Zhu et al., KDD 2017, equation 8). "
              "`group_by` defines the groups. Exact up to 8 million samples, above that computed on randomly chosen "
              "groups",
          .of_groups = true,
          .undefined = "no group has labels of both classes",
          .measure = make_measure<GroupedAucMeasure>};
}

}  // namespace hctr
