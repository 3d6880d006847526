#include "net/plan/step_facts.h"

#include <algorithm>

namespace hctr {
namespace {

/// The first node that reads an output of node `n`, if `n` runs best concurrently with the nodes between the two.
std::optional<size_t> concurrent_until(const Graph& graph, size_t n) {
  const Node& node = graph.nodes[n];
  if (!graph.edges[node.out[0]].needs_gradient || !node.spec.traits.runs_aside) return std::nullopt;
  size_t first = graph.nodes.size();
  for (const TensorId out : node.out)
    for (const size_t reader : graph.edges[out].readers) first = std::min(first, reader);
  return first > n + 1 && first < graph.nodes.size() ? std::optional(first) : std::nullopt;
}

/// Whether the layer's dgrad is one GEMM that fills the GPU. False for several GEMMs, because work queued after the
/// dgrad would wait for all of them.
bool one_dgrad_fills(const Node& node, const LayerIo& io, const std::optional<GpuTraits>& gpu) {
  if (node.spec.weights.empty() || node.spec.weights.size() > 2 || io.d_in.size() != 1 || !io.d_in[0]) return false;
  return ops::keeps_gpu_busy(gpu, io.d_in[0]->rows(), io.d_in[0]->row_elements());
}

bool is_matrix(const Tensor& gradient) { return gradient.rows() > 1 && gradient.row_elements() > 1; }

const Tensor& operand_of(const LayerIo& io, const WeightProduct::Operand& operand) {
  using In = WeightProduct::Operand::In;
  return (operand.in == In::inputs ? io.in : operand.in == In::scratch ? io.scratch : io.d_out).at(operand.index);
}

void add_weight_gradients(LayerFacts& facts, const LayerSpec& spec, const LayerIo& io,
                          const std::optional<GpuTraits>& gpu, const RuntimeOptions& options) {
  facts.weight_gradients = !io.d_weights.empty();
  facts.weights_in_backward = writes_weights_in_backward(spec, io);
  facts.matrix_gradient = std::ranges::any_of(io.d_weights, is_matrix);
  if (!facts.weight_gradients) return;
  for (const WeightProduct& product : spec.traits.weight_products) {
    const Tensor& x = operand_of(io, product.x);
    const auto run =
        ops::planned_weight_gradient_run(gpu, options, x, operand_of(io, product.d_y), io.d_weights.at(product.weight));
    if (run == ops::WeightGradientRun::together && x.dtype() != DType::f16) facts.finite_products = false;
    if (!product.in_backward)
      facts.wgrad = facts.weights_in_backward ? ops::WeightGradientRun::in_order : run;
    else if (run == ops::WeightGradientRun::together)
      ++facts.grouped_in_backward;
  }
}

}  // namespace

size_t StepFacts::first_reader() const {
  const auto first = std::ranges::find_if(layers, [](const LayerFacts& layer) { return !layer.first_reads.empty(); });
  return static_cast<size_t>(first - layers.begin());
}

bool StepFacts::computes_before_embeddings() const {
  const std::span<const LayerFacts> before = std::span(layers).first(first_reader());
  return std::ranges::any_of(before, &LayerFacts::weights) && std::ranges::none_of(before, &LayerFacts::loss);
}

bool StepFacts::any_weight_copies() const { return std::ranges::any_of(layers, &LayerFacts::weight_copies); }

std::vector<LayerFacts> layer_facts(const Graph& graph, std::span<const LayerIo> calls,
                                    const std::optional<GpuTraits>& gpu, const RuntimeOptions& options) {
  std::vector<LayerFacts> all;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const LayerIo& io = calls[n];
    LayerFacts& facts = all.emplace_back();
    facts.name = node.entry->tops[0];
    facts.loss = node.is_loss();
    facts.trained = graph.edges[node.out[0]].needs_gradient;
    facts.own_memory = node.spec.memory == LayerSpec::Memory::own;
    facts.run_by_loss = node.run_by_loss;
    facts.dgrad_fills_gpu = one_dgrad_fills(node, io, gpu);
    facts.weight_copies = std::ranges::any_of(io.transposed, [](const auto& copy) { return copy.has_value(); });
    facts.weights = !node.spec.weights.empty();
    facts.transient = !node.spec.transient.empty();
    facts.concurrent_until = concurrent_until(graph, n);
    add_weight_gradients(facts, node.spec, io, gpu, options);
    for (const auto& below : node.finishes)
      if (below) all[*below].fused_relu = true;
  }
  for (size_t e = 0; e < graph.embeddings.size(); ++e) {
    const auto reads = [&](const Node& node) { return std::ranges::count(node.in, graph.embeddings[e]) > 0; };
    const auto first = std::ranges::find_if(graph.nodes, reads);
    // If no layer reads an embedding, the first loss, which always runs backward, zeroes the embedding's gradient.
    all[first == graph.nodes.end() ? graph.losses[0] : static_cast<size_t>(first - graph.nodes.begin())]
        .first_reads.push_back(e);
  }
  return all;
}

}  // namespace hctr
