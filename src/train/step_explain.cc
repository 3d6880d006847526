#include "train/step_explain.h"

#include <algorithm>

#include "net/graph/node_tensors.h"
#include "net/model/gradient_exchange.h"
#include "net/model/gradient_ranges.h"
#include "net/model/replica.h"
#include "ops/gemm/transposed_weights.h"
#include "train/placement_plan.h"

namespace hctr {
namespace {

/// A tensor with an address but no memory; its data are never accessed.
Tensor placed(const TensorSpec& spec, Device device) {
  Arena arena;
  const size_t ticket = arena.add(spec);
  arena.place(device);
  return arena.get(ticket);
}

struct PlacedModel {
  std::vector<LayerIo> calls;
  bool copies_dense = false;
};

PlacedModel place_model(const Config& config, const Graph& graph, int64_t samples, const std::optional<GpuTraits>& gpu,
                        const RuntimeOptions& options) {
  const Device device{gpu ? DeviceKind::cuda : DeviceKind::cpu, 0};
  MemoryPlan memory(graph, Phase::train);
  memory.place(device);
  const Tensor label = placed(graph.edges[graph.label].spec, device);
  std::optional<Tensor> dense;
  if (graph.dense) {
    const BatchLayout layout = batch_layout(config, samples, device);
    dense = placed(TensorSpec(layout.dense_dtype, {samples, layout.shape.dense_dim}, layout.dense_stride), device);
  }
  PlacedModel model{.calls = {}, .copies_dense = graph.dense.has_value() && !memory.takes_as_data(graph, *dense)};
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const LayerSpec& spec = graph.nodes[n].spec;
    LayerIo& io = model.calls.emplace_back(
        node_tensors(graph, memory, n, Phase::train, label, model.copies_dense ? std::nullopt : dense));
    io.fp8.resize(spec.fp8_products);
    for (const WeightSpec& weight : spec.weights) {
      const DType read_as = spec.outputs[0].dtype;
      io.weights.push_back(placed(TensorSpec(read_as, weight.shape), device));
      io.d_weights.push_back(placed(TensorSpec(DType::f32, weight.shape), device));
      const bool copied = weight.transposed && read_as == DType::f32 && ops::gains_by_transposed_weights(gpu, options);
      io.transposed.push_back(copied ? std::optional(io.weights.back()) : std::nullopt);
    }
  }
  return model;
}

/// Whether copy engines send gradients. They do if vectors are long and each gradient goes to a single owner without
/// prior summation.
bool by_engines(const TableSpec& spec, const Placement& placement) {
  constexpr int64_t kLongVector = 128;  // bytes
  const auto one_owner = [&](int64_t slot) { return !placement.spread(slot); };
  for (int64_t slot = 0; slot < spec.slots * placement.pieces; ++slot)
    if (!one_owner(slot)) return false;
  const bool as_they_are = spec.combiner == ops::Combiner::sum || spec.combiner == ops::Combiner::none;
  return as_they_are && spec.replication.of != Replication::Of::frequent &&
         spec.dim / placement.pieces * static_cast<int64_t>(size_of(spec.exchange)) >= kLongVector;
}

void add_tables(const Config& config, int64_t samples, StepFacts& facts) {
  const int64_t ranks = facts.ranks;
  const bool one_host = config.solver.gpu.per_process.size() == 1;
  const std::vector<Placement> planned =
      ranks > 1 ? expected_placements(config, plan_problem(config, ranks, {})) : std::vector<Placement>();
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const EmbeddingSection& section = config.embeddings[e].section;
    const SparseInput& input = *std::ranges::find(config.data.sparse, section.bottom, &SparseInput::top);
    const Placement placement =
        ranks > 1 ? planned.at(e)
                  : Placement::without_plan(section.placement_rule(), section.identity_by_slot(), input.slot_num, 1);
    std::vector<int64_t> slot_keys;
    for (int64_t s = 0; s < input.slot_num; ++s) slot_keys.push_back(input.kept_nnz(s));
    TableSpec spec = section.table_spec({.optimizer = config.optimizer,
                                         .exchange = config.solver.exchange(),
                                         .ranks = facts.ranks,
                                         .placement = placement,
                                         .batch = config.solver.batchsize,
                                         .slot_keys = slot_keys,
                                         .samples = samples,
                                         .key_capacity = input.kept_keys() * samples});
    spec.slots = input.slot_num;
    const TableMemory memory =
        section.table_memory ? section.table_memory->with(config.solver.table_memory) : config.solver.table_memory;
    TableFacts& table = facts.tables.emplace_back();
    table.name = spec.name;
    table.by_element = spec.dim % 4 != 0;
    table.on_disk = !memory.disk.empty() && !spec.fixed_keys && spec.rows_move && spec.direct.empty();
    if (ranks == 1) continue;
    table.replicated_rows = spec.replication.of != Replication::Of::none || placement.some_replicated();
    table.exchanges_by_kernels = one_host && !table.replicated_rows;
    table.sends_by_engines = one_host && by_engines(spec, placement);
    facts.may_skip = facts.may_skip || spec.exchange == DType::f16;
  }
}

/// Marks the layers at which an all-reduce of gradients starts.
void mark_all_reduces(const Config& config, const Graph& graph, StepFacts& facts) {
  const bool between_two = facts.ranks == 2 && config.solver.gpu.per_process.size() == 1;
  const int64_t bytes = between_two ? GradientExchange::kPeerBucketBytes : GradientExchange::kBucketBytes;
  for (const auto& bucket :
       gradient_buckets(gradient_ranges(config, graph), bytes / static_cast<int64_t>(sizeof(float))))
    facts.layers[bucket.node].sums_over_ranks = true;
}

const LossLayer& loss_layer(const Graph& graph, size_t loss) {
  return dynamic_cast<const LossLayer&>(graph.nodes[graph.losses[loss]].layer());
}

bool any_penalty(const Graph& graph) {
  for (size_t l = 0; l < graph.losses.size(); ++l)
    if (loss_layer(graph, l).regularizer().kind != LossLayer::Regularizer::Kind::none) return true;
  return false;
}

}  // namespace

StepFacts expected_step_facts(const Config& config, const std::optional<GpuTraits>& gpu) {
  const SolverSection& solver = config.solver;
  StepFacts facts{.gpu = gpu, .ranks = static_cast<int>(std::max<int64_t>(1, solver.gpu.count()))};
  const RuntimeOptions options{.tf32 = solver.enable_tf32_compute, .tf32x3 = solver.tf32x3()};
  const int64_t samples = samples_of_rank(solver.batchsize, facts.ranks);
  const Graph graph = wired_graph(config, samples, Phase::train);
  const PlacedModel model = place_model(config, graph, samples, gpu, options);
  const DType activations = solver.mixed_precision.activations;
  facts.recorded_whole = facts.ranks == 1 || solver.gpu.per_process.size() == 1;
  facts.tensor_cores = activations != DType::f32 || options.tf32;
  facts.may_skip = solver.mixed_precision.may_overflow() || solver.on_nan == OnNan::skip;
  facts.penalty = any_penalty(graph);
  facts.copies_dense = model.copies_dense;
  facts.bag_lengths = std::ranges::any_of(graph.lengths, [](const auto& id) { return id.has_value(); });
  facts.several_losses = graph.losses.size() > 1 || loss_layer(graph, 0).weight() != 1;
  facts.fp8 = std::ranges::any_of(graph.nodes, [](const Node& node) { return node.spec.fp8_products > 0; });
  facts.layers = layer_facts(graph, model.calls, gpu, options);
  add_tables(config, samples, facts);
  if (!graph.embeddings.empty())
    facts.lookup_shares = ops::shares_beside_lookup(gpu, graph.edges[graph.embeddings[0]].spec.dtype,
                                                    options.tf32 && !options.tf32x3, samples);
  if (facts.ranks > 1) mark_all_reduces(config, graph, facts);
  return facts;
}

std::string explain_step(const Config& config, const std::optional<GpuTraits>& gpu) {
  const StepPlan plan = plan_step(expected_step_facts(config, gpu));
  const std::string device = gpu ? cat("GPU of compute capability ", gpu->compute_capability / 10, ".",
                                       gpu->compute_capability % 10, " with ", gpu->multiprocessors, " multiprocessors")
                                 : std::string("CPU");
  return cat("The plan of a training step on ",
             plan.facts.ranks == 1 ? "one " : cat(plan.facts.ranks, " ranks, each with a "), device, ", ",
             samples_of_rank(config.solver.batchsize, plan.facts.ranks), " samples",
             plan.facts.ranks == 1 ? "" : " each", ".\n\n", step_table(plan));
}

}  // namespace hctr
