// The catalog of all metrics, in the order of the manual.
#include <algorithm>

#include "metrics/metrics.h"

namespace hctr {

MetricType auc();
MetricType normalized_entropy();
MetricType calibration();
MetricType hit_rate();
MetricType grouped_auc();
MetricType ndcg();
MetricType smape();

namespace {

/// AverageLoss has no Measure, because the model itself computes the loss.
MetricType average_loss() {
  return {.name = "AverageLoss",
          .aliases = {"LogLoss"},
          .better = MetricType::Better::lower,
          .text = "the model's loss, penalties included, averaged over the samples",
          .measure = nullptr};
}

}  // namespace

const std::vector<MetricType>& metric_types() {
  static const std::vector<MetricType> types = {
      auc(), average_loss(), normalized_entropy(), calibration(), hit_rate(), grouped_auc(), ndcg(), smape()};
  return types;
}

const MetricType* find_metric_type(const std::string& word) {
  for (const MetricType& type : metric_types())
    if (type.name == word || std::find(type.aliases.begin(), type.aliases.end(), word) != type.aliases.end())
      return &type;
  return nullptr;
}

}  // namespace hctr
