#include "train/step_work.h"

#include <algorithm>
#include <cmath>

#include "core/comm/self_comm.h"
#include "core/device/arena.h"
#include "net/fusion/fuse_layers.h"
#include "net/model/network.h"

namespace hctr {
namespace {

// Sample counts of two trial steps. Both counts fill 16-byte rows in every dtype.
constexpr int64_t kFewer = 16, kMore = 32;

constexpr double kExponent = 1.05;

std::vector<PartWork> trial(const Config& config, int64_t samples) {
  Problems problems;
  Graph graph = wire(config, samples, problems);
  problems.throw_if_any("the config");
  fuse_layers(graph);
  Runtime runtime(Device{}, {.threads = 1, .seed = 1});
  SelfComm comm;
  const Weights weights(config, graph, runtime);
  const LayerState state(config, graph, runtime);
  const Network network(graph, Phase::train, weights, state, runtime, comm);
  Arena data;
  const size_t label = data.add(graph.edges[graph.label].spec);
  std::optional<size_t> dense;
  if (graph.dense) dense = data.add(TensorSpec(DType::f32, graph.edges[*graph.dense].spec.shape));
  data.build(Device{});
  const auto rows = static_cast<int32_t>(samples);
  const StepState step{.valid_samples = rows, .global_samples = rows, .samples = rows};
  Context ctx(runtime, runtime.compute_stream(), &step);
  const Network::Binding binding =
      network.bind(data.get(label), dense ? std::optional(data.get(*dense)) : std::nullopt);
  Profiler profiler(runtime);
  profiler.start();
  network.forward(ctx, binding);
  network.backward(ctx, binding);
  profiler.stop();
  std::vector<PartWork> parts;
  for (const Span& span : profiler.spans())
    parts.push_back({std::string(span.part), std::string(span.type), std::string(span.name), span.work});
  parts.push_back({"update", "weights", "all weights", weights.work_of_update()});
  return parts;
}

double at(double fewer, double more, int64_t samples) {
  return fewer + (more - fewer) / static_cast<double>(kMore - kFewer) * static_cast<double>(samples - kFewer);
}

}  // namespace

std::vector<PartWork> work_of_dense_layers(const Config& config, int64_t samples) {
  std::vector<PartWork> parts = trial(config, kFewer);
  const std::vector<PartWork> more = trial(config, kMore);
  HCTR_EXPECT(parts.size() == more.size(), parts.size(), " parts of a small step, and ", more.size(),
              " of a larger one");
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].work.flops = at(parts[i].work.flops, more[i].work.flops, samples);
    parts[i].work.bytes = at(parts[i].work.bytes, more[i].work.bytes, samples);
  }
  return parts;
}

double expected_distinct(double draws, int64_t rows) {
  if (rows <= 0 || draws <= 0) return 0;
  // Rows 1 to kSingle are summed individually. Later rows are summed in ranges, each a sixteenth longer than the last,
  // with constant probability within a range.
  constexpr int64_t kSingle = 1024;
  struct KeyRange {
    double count, weight;
  };
  std::vector<KeyRange> ranges;
  double sum = 0;
  for (int64_t first = 1; first <= rows;) {
    const int64_t last = std::min(rows, first < kSingle ? first : first + first / 16);
    const double middle = 0.5 * static_cast<double>(first + last), count = static_cast<double>(last - first + 1);
    ranges.push_back({count, std::pow(middle, -kExponent)});
    sum += count * ranges.back().weight;
    first = last + 1;
  }
  double distinct = 0;
  for (const KeyRange& range : ranges)
    distinct += range.count * -std::expm1(draws * std::log1p(-std::min(range.weight / sum, 1 - 1e-15)));
  return distinct;
}

std::vector<std::vector<SlotKeys>> assumed_keys(const Config& config, int64_t samples) {
  std::vector<std::vector<SlotKeys>> inputs;
  for (const SparseInput& input : config.data.sparse) {
    const auto table = std::find_if(config.embeddings.begin(), config.embeddings.end(),
                                    [&](const EmbeddingEntry& entry) { return entry.section.bottom == input.top; });
    const std::vector<int64_t> sizes =
        table == config.embeddings.end() ? std::vector<int64_t>() : table->section.hparam.slot_size_array;
    std::vector<SlotKeys>& slots = inputs.emplace_back();
    const double places = static_cast<double>(std::max<int64_t>(input.kept_places(), 1)),
                 share = std::min(1.0, static_cast<double>(input.kept_keys()) / places);
    for (int64_t s = 0; s < input.slot_num; ++s) {
      const double keys = static_cast<double>(input.kept_nnz(s)) * share, all = keys * static_cast<double>(samples);
      slots.push_back({keys, sizes.empty() ? all : expected_distinct(all, sizes.at(static_cast<size_t>(s)))});
    }
  }
  return inputs;
}

std::vector<TableSpec> specs_on_one_rank(const Config& config, int64_t samples) {
  std::vector<TableSpec> specs;
  for (const EmbeddingEntry& entry : config.embeddings) {
    const SparseInput& input = *std::find_if(config.data.sparse.begin(), config.data.sparse.end(),
                                             [&](const SparseInput& each) { return each.top == entry.section.bottom; });
    std::vector<int64_t> slot_keys;
    for (int64_t s = 0; s < input.slot_num; ++s) slot_keys.push_back(input.kept_nnz(s));
    const Placement placement =
        Placement::without_plan(entry.section.placement_rule(), entry.section.identity_by_slot(), input.slot_num, 1);
    specs.push_back(entry.section.table_spec({.optimizer = config.optimizer,
                                              .exchange = config.solver.exchange(),
                                              .placement = placement,
                                              .batch = samples,
                                              .slot_keys = slot_keys,
                                              .samples = samples,
                                              .key_capacity = input.kept_keys() * samples}));
    specs.back().slots = input.slot_num;
  }
  return specs;
}

std::vector<TableUse> uses_of_tables(const Config& config, int64_t samples,
                                     const std::vector<std::vector<SlotKeys>>& keys) {
  std::vector<TableUse> uses;
  for (const EmbeddingEntry& entry : config.embeddings) {
    TableUse& use = uses.emplace_back();
    for (size_t i = 0; i < config.data.sparse.size(); ++i) {
      if (config.data.sparse[i].top != entry.section.bottom) continue;
      for (const SlotKeys& slot : keys.at(i)) {
        use.keys += slot.keys * static_cast<double>(samples);
        use.rows += slot.distinct;
      }
    }
  }
  return uses;
}

}  // namespace hctr
