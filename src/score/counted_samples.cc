#include "score/counted_samples.h"

#include <algorithm>

#include "core/base/expect.h"
#include "score/batch_check.h"

namespace hctr {
namespace {

constexpr float kLeastLabel = -0.5f;  // smaller labels count as missing

}  // namespace

CountedSamples::CountedSamples(const Config& config, const Graph& graph) : label_dim_(config.data.label.label_dim) {
  for (const size_t id : graph.losses) {
    const Node& loss = graph.nodes[id];
    losses_.push_back({.top = loss.entry->tops[0]});
    std::optional<Columns>& columns = columns_.emplace_back();
    const auto first = first_label_column(graph, loss.in[1]);
    if (!first) continue;
    columns = {*first, static_cast<size_t>(graph.edges[loss.in[1]].spec.row_elements()), std::nullopt};
    if (loss.in.size() > 2) columns->weight = first_label_column(graph, loss.in[2]);
  }
}

void CountedSamples::add(const BatchView& batch) {
  if (all_counted_) return;
  const int64_t rows = batch.state->valid_samples;
  for (size_t l = 0; l < losses_.size(); ++l) {
    Loss& loss = losses_[l];
    const std::optional<Columns>& of = columns_[l];
    for (int64_t r = 0; r < rows && !loss.counted; ++r) {
      const float* row = batch.label + r * label_dim_;
      const auto known = [](float label) { return label >= kLeastLabel; };
      const bool label = !of || std::any_of(row + of->first_label, row + of->first_label + of->labels, known);
      const bool weight = !of || !of->weight || row[*of->weight] > 0;
      loss.label |= label;
      loss.weight |= weight;
      loss.counted = label && weight;
    }
  }
  all_counted_ = std::all_of(losses_.begin(), losses_.end(), [](const Loss& loss) { return loss.counted; });
}

CountedSamples::Loss over_all_ranks(CountedSamples::Loss loss, Communicator& comm) {
  loss.counted = comm.any(loss.counted);
  loss.label = comm.any(loss.label);
  loss.weight = comm.any(loss.weight);
  return loss;
}

std::string why_none_counts(const CountedSamples::Loss& loss, const std::string& weight_column) {
  const std::string column = weight_column.empty() ? "" : cat(" (\"sample_weight\" is column '", weight_column, "')");
  if (!loss.label && !loss.weight) return "no sample has a label, and every sample has weight 0" + column;
  if (!loss.label) return "every label is missing";
  if (!loss.weight) return "every weight is 0" + column;
  return "every sample with a label has weight 0" + column;
}

}  // namespace hctr
