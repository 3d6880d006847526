#include "train/best_metrics.h"

#include <optional>

#include "model/graph.h"

namespace hctr {
namespace {

/// The first of the label's columns that a tensor holds.
std::optional<size_t> first_label(const Graph& graph, TensorId id) {
  if (id == graph.label) return 0;
  const Edge& edge = graph.edges[id];
  if (!edge.producer) return std::nullopt;
  const Node& node = graph.nodes[*edge.producer];
  if (node.plan.first_columns.empty()) return std::nullopt;
  const auto before = first_label(graph, node.in[0]);
  if (!before) return std::nullopt;
  for (size_t t = 0; t < node.out.size(); ++t)
    if (node.out[t] == id) return *before + static_cast<size_t>(node.plan.first_columns[t]);
  return std::nullopt;
}

struct LossMetrics {
  double auc = 0, loss = 0;
};

/// The metrics of the truth on one loss: means over its labels.
std::optional<LossMetrics> metrics_of(const Graph& graph, const Node& loss, const BestPossible& best) {
  const auto first = first_label(graph, loss.in[1]);
  if (!first) return std::nullopt;
  if (best.labels.empty()) return LossMetrics{best.auc, best.average_loss};
  const auto count = static_cast<size_t>(graph.edges[loss.in[1]].spec.row_elements());
  if (*first + count > best.labels.size()) return std::nullopt;  // this truth belongs to other data
  LossMetrics mean;
  for (size_t label = *first; label < *first + count; ++label) {
    mean.auc += best.labels[label].auc / static_cast<double>(count);
    mean.loss += best.labels[label].average_loss / static_cast<double>(count);
  }
  return mean;
}

}  // namespace

std::map<std::string, double> best_metrics(const Config& config, const BestPossible& best) {
  Problems none;  // the config has been checked before
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

}  // namespace hctr
