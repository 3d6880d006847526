#include "score/batch_check.h"

#include <algorithm>
#include <limits>

#include "core/base/expect.h"

namespace hctr {
namespace {

struct LabelRule {
  const char* loss;
  float low, high;
  bool may_be_missing;
  const char* takes;
};
constexpr int64_t kMostNarrow = std::numeric_limits<uint32_t>::max();
constexpr float kAny = std::numeric_limits<float>::max();
constexpr LabelRule kLabelRules[] = {
    {"BinaryCrossEntropyLoss", 0, 1, false, "0 to 1"},
    {"CrossEntropyLoss", -kAny, kAny, false, "any number; 0.5 or more means the second class"},
    {"MultiCrossEntropyLoss", 0, 1, true, "0 to 1, or less than -0.5 for a missing label"},
};

/// Whether the format's reader rejects keys wider than "input_key_type".
bool checks_keys(DataFormat format) {
  return format.name == "Norm" || format.name == "Raw" || format.name == "RawAsync" || format.name == "Parquet";
}

}  // namespace

std::optional<size_t> first_label_column(const Graph& graph, TensorId id) {
  if (id == graph.label) return 0;
  const Edge& edge = graph.edges[id];
  if (!edge.producer) return std::nullopt;
  const Node& node = graph.nodes[*edge.producer];
  if (node.spec.first_columns.empty()) return std::nullopt;
  const auto before = first_label_column(graph, node.in[0]);
  if (!before) return std::nullopt;
  for (size_t t = 0; t < node.out.size(); ++t)
    if (node.out[t] == id) return *before + static_cast<size_t>(node.spec.first_columns[t]);
  return std::nullopt;
}

BatchCheck::BatchCheck(const Config& config, const Graph& graph, std::string source, bool labels)
    : source_(std::move(source)),
      label_dim_(config.data.label.label_dim),
      inputs_(config.data.sparse),
      narrow_keys_(config.solver.input_key_type == KeyType::i32 && !checks_keys(config.data.format)) {
  for (size_t l = 0; labels && l < graph.losses.size(); ++l) {
    const Node& loss = graph.nodes[graph.losses[l]];
    const auto first = first_label_column(graph, loss.in[1]);
    const auto rule = std::find_if(std::begin(kLabelRules), std::end(kLabelRules),
                                   [&](const LabelRule& one) { return loss.entry->type->name() == one.loss; });
    if (!first || rule == std::end(kLabelRules)) continue;
    const auto count = static_cast<size_t>(graph.edges[loss.in[1]].spec.row_elements());
    // the correction for negative sampling requires labels 0 and 1
    const bool sampled = config.data.negative_sampling < 1;
    for (size_t c = *first; c < *first + count; ++c)
      columns_.push_back({c, rule->low, rule->high, rule->may_be_missing, sampled && rule->low == 0,
                          sampled && rule->low == 0
                              ? "\"negative_sampling\" needs labels that are 0 or 1"
                              : cat("'", loss.entry->tops[0], "' (", rule->loss, ") takes ", rule->takes)});
  }
  for (size_t l = 0; labels && l < graph.losses.size(); ++l) {
    const Node& loss = graph.nodes[graph.losses[l]];
    if (loss.in.size() < 3) continue;
    if (const auto column = first_label_column(graph, loss.in[2]))
      columns_.push_back(
          {*column, 0, kAny, false, false, cat("'", loss.entry->tops[0], "' needs a sample weight of 0 or more")});
  }
}

void BatchCheck::expect(const BatchView& batch, int64_t samples_in_set) const {
  const int64_t rows = batch.state->valid_samples, samples = batch.state->samples;
  const auto sample = [&](int64_t row) {
    const int64_t number = batch.state->first_sample + row;
    return cat("'", source_, "': sample ", (samples_in_set > 0 ? number % samples_in_set : number) + 1);
  };
  for (const Column& column : columns_) {
    const float* labels = batch.label + column.index;
    const auto fits = [&](float y) {
      if (column.may_be_missing && y < -0.5f) return true;
      return column.binary ? y == 0 || y == 1 : y >= column.low && y <= column.high;
    };
    bool all_fit = true;
    for (int64_t r = 0; r < rows; ++r) all_fit &= fits(labels[r * label_dim_]);
    for (int64_t r = 0; !all_fit && r < rows; ++r)
      if (const float y = labels[r * label_dim_]; !fits(y))
        throw Error(Kind::data, cat(sample(r), " has ", y, " as label ", column.index, ", but ", column.takes));
  }
  for (size_t t = 0; narrow_keys_ && t < batch.tables.size(); ++t) {
    const BatchView::Table& table = batch.tables[t];
    if (table.packed->key_bytes == 4) continue;
    int64_t wide = 0;
    while (wide < table.packed->count && table.key(wide) >= 0 && table.key(wide) <= kMostNarrow) ++wide;
    if (wide == table.packed->count) continue;
    int64_t bag = 0;
    while (table.offset(bag + 1) <= wide) ++bag;
    throw Error(Kind::data, cat(sample(bag % samples), " has key ", table.key(wide), " in slot ", bag / samples,
                                " of '", inputs_[t].top,
                                "', but \"input_key_type\" \"I32\" allows only 0 to 4294967295: set "
                                "\"input_key_type\" to \"I64\""));
  }
}

}  // namespace hctr
