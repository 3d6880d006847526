#include "score/best_metrics.h"

#include <optional>

#include "net/graph/graph.h"
#include "score/batch_check.h"

namespace hctr {
namespace {

struct LossMetrics {
  double auc = 0, loss = 0;
};

/// The metrics of the true probabilities for one loss, averaged over its labels. Empty if unknown.
std::optional<LossMetrics> metrics_of(const Graph& graph, const Node& loss, const BestPossible& best) {
  const auto first = first_label_column(graph, loss.in[1]);
  if (!first) return std::nullopt;
  if (best.labels.empty()) return LossMetrics{best.auc, best.average_loss};
  const auto count = static_cast<size_t>(graph.edges[loss.in[1]].spec.row_elements());
  if (*first + count > best.labels.size()) return std::nullopt;  // the file with the best values belongs to other data
  LossMetrics mean;
  for (size_t label = *first; label < *first + count; ++label) {
    mean.auc += best.labels[label].auc / static_cast<double>(count);
    mean.loss += best.labels[label].average_loss / static_cast<double>(count);
  }
  return mean;
}

}  // namespace

std::map<std::string, double> best_metrics(const Config& config, const BestPossible& best) {
  Problems none;  // stays empty, because the config has been checked before
  const Graph graph = wire(config, config.solver.batchsize, none);
  std::map<std::string, double> named;
  std::optional<double> sum = 0;
  for (size_t l = 0; l < graph.losses.size(); ++l) {
    const Node& loss = graph.nodes[graph.losses[l]];
    const auto metrics = metrics_of(graph, loss, best);
    if (metrics) named[l == 0 ? "AUC" : "AUC/" + loss.entry->tops[0]] = metrics->auc;
    if (metrics && graph.losses.size() > 1) named["AverageLoss/" + loss.entry->tops[0]] = metrics->loss;
    const double weight = dynamic_cast<const LossLayer&>(*loss.entry->layer).weight();
    sum = sum && metrics ? std::optional(*sum + weight * metrics->loss) : std::nullopt;
  }
  if (sum) named["AverageLoss"] = *sum;
  return named;
}

std::map<std::string, double> best_metrics(const Config& config) {
  std::map<std::string, double> values;
  const auto best = read_best_possible(config.data.eval_source);
  if (!best) return values;
  for (const auto& [name, value] : best_metrics(config, *best))
    for (const Metric& metric : config.solver.eval_metrics.metrics)
      if (name == metric.type->name || name.starts_with(metric.type->name + "/")) values[name] = value;
  return values;
}

}  // namespace hctr
