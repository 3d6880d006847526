#include "net/model/network.h"

#include <algorithm>
#include <span>

#include "core/base/expect.h"
#include "core/device/profiler.h"
#include "core/device/scoring_scope.h"
#include "net/graph/layer_bytes.h"
#include "net/graph/layer_part.h"
#include "net/graph/node_tensors.h"
#include "net/layers/fusable_layer.h"
#include "ops/common/add.h"
#include "ops/common/copy.h"
#include "ops/common/fill.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/transposed_weights.h"

namespace hctr {
namespace {

std::vector<ops::TransposedWeights> transposed_weights_of(std::span<const LayerIo> calls) {
  std::vector<ops::TransposedWeights> all;
  for (const LayerIo& io : calls)
    for (size_t i = 0; i < io.transposed.size(); ++i)
      if (io.transposed[i]) all.push_back({io.weights[i], *io.transposed[i]});
  return all;
}

void write_transposed_weights(Context& ctx, const std::vector<ops::TransposedWeights>& all) {
  if (all.empty()) return;
  Work work;  // for profiling: the bytes of the weights (read) and of their copies (written)
  for (const auto& [w, copy] : all) work.bytes += static_cast<double>(w.spec().bytes() + copy.spec().bytes());
  const ProfiledPart part(ctx, "forward", "weights", "transposed copies", work);
  ops::transpose_weights(ctx, all);
}

/// The node's layer as a FusableLayer. Call only for nodes whose layer a fusion has already found to be of this class.
const FusableLayer& fusable(const Node& node) { return dynamic_cast<const FusableLayer&>(node.layer()); }

/// The only reader of an embedding, if that node checks the embedding's gradient for overflow while writing it.
std::optional<size_t> searching_node(const Graph& graph, TensorId embedding) {
  const std::vector<size_t>& readers = graph.edges[embedding].readers;
  if (readers.size() != 1) return std::nullopt;
  const Node& node = graph.nodes[readers[0]];
  const auto input = node.spec.traits.searches_gradient_of;
  return input && node.in[*input] == embedding ? std::optional(readers[0]) : std::nullopt;
}

}  // namespace

Network::Network(const Graph& graph, Phase phase, const Weights& weights, const LayerState& state, Runtime& runtime,
                 Communicator& comm, GradientExchange* gradients)
    : graph_(graph),
      phase_(phase),
      weights_(weights),
      state_(state),
      comm_(comm),
      gradients_(gradients),
      memory_(graph, phase, runtime.device()),
      contributions_(graph.edges.size()) {
  for (const TensorId embedding : graph.embeddings) searched_by_.push_back(searching_node(graph, embedding));
  for (MemoryPlan::Sum& sum : memory_.sums()) contributions_[sum.edge] = std::move(sum.contributions);
  if (graph.losses.size() > 1 || loss_layer(0).weight() != 1) {
    total_.emplace().add(TensorSpec(DType::f32, {1}));
    total_->build(runtime.device());
  }
}

Network::Binding Network::bind(Tensor label, std::optional<Tensor> dense, ops::OverflowSearch search, bool of_operands,
                               const Fp8Scales* scales) const {
  Binding binding;
  const bool copies_dense = graph_.dense && !memory_.takes_as_data(graph_, *dense);
  if (copies_dense) binding.dense = dense;
  const std::optional<Tensor> read_in_batch = copies_dense ? std::nullopt : dense;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    LayerIo io = node_tensors(graph_, memory_, n, phase_, label, read_in_batch);
    if (scales) io.fp8 = scales->of_node(n);
    io.weights = weights_.of_node(n);
    io.transposed = weights_.transposed_of_node(n);
    io.state = state_.of_node(n);
    if (phase_ == Phase::train) {
      io.d_weights = weights_.gradients_of_node(n);
      if (node.logit) io.logit = logit_io(binding, *node.logit);
      for (const auto& below : node.finishes)
        io.below.push_back(below ? std::optional(fusable(graph_.nodes[*below]).relu_end(binding.calls[*below]))
                                 : std::nullopt);
    }
    io.sum_over_ranks = [&comm = comm_, gradients = gradients_](Context& ctx, const Tensor& tensor) {
      if (gradients) gradients->join(ctx);
      comm.all_reduce(ctx, tensor, Reduce::sum);
    };
    binding.calls.push_back(std::move(io));
  }
  for (LayerIo& io : binding.calls)
    if (of_operands) io.operands = search;
  for (const auto& node : searched_by_)
    if (node) binding.calls[*node].overflow = search;
  return binding;
}

LogitIo Network::logit_io(const Binding& binding, const Node::LogitNodes& nodes) const {
  LogitIo io{fusable(graph_.nodes[nodes.layer]).logit_layer(binding.calls[nodes.layer]), std::nullopt};
  if (nodes.sum) {
    const LayerIo& sum = binding.calls[*nodes.sum];
    io.sum = {sum.in, sum.d_in, sum.out[0]};
  }
  return io;
}

void Network::forward_node(Context& ctx, const Binding& binding, size_t n) const {
  const ProfiledPart part = part_of(graph_.nodes[n], ctx, "forward", [&] { return bytes_forward(binding.calls[n]); });
  in_context([&] { return cat("running ", label_of(graph_.nodes[n]), " forward"); },
             [&] { graph_.nodes[n].layer().forward(ctx, binding.calls[n], phase_); });
}

void Network::write_weight_copies(Context& ctx, const Binding& binding, size_t begin, size_t end) const {
  write_transposed_weights(ctx, transposed_weights_of(std::span(binding.calls).subspan(begin, end - begin)));
}

void Network::convert_dense(Context& ctx, const Binding& binding) const {
  if (!binding.dense) return;
  const ProfiledPart part(ctx, "forward", "Cast", "dense", {});
  ops::copy(ctx, *binding.dense, memory_.value(*graph_.dense));
}

void Network::forward(Context& ctx, const Binding& binding) const {
  if (phase_ == Phase::evaluate && !ctx.ordered_products()) {
    Context ordered = ctx.with_ordered_products();
    return forward(ordered, binding);
  }
  convert_dense(ctx, binding);
  if (!binding.weights_are_fixed) write_weight_copies(ctx, binding);
  for (size_t n = 0; n < graph_.nodes.size(); ++n)
    if (!is_run_by_loss(n)) forward_node(ctx, binding, n);
  sum_losses(ctx);
}

void Network::sum_losses(Context& ctx) const {
  const ScoringRules* const rules = ScoringScope::rules();
  if (!total_ || (rules && !rules->losses)) return;
  const ProfiledPart part(ctx, "forward", "loss", "sum of losses");
  ops::fill(ctx, 0, loss());
  for (size_t l = 0; l < graph_.losses.size(); ++l)
    ops::add_scaled(ctx, losses()[l], static_cast<float>(loss_layer(l).weight()), loss());
}

Tensor Network::loss() const { return total_ ? total_->get(0) : losses()[0]; }

std::vector<Tensor> Network::outputs_of_losses(size_t output) const {
  std::vector<Tensor> tensors;
  for (const size_t n : graph_.losses) tensors.push_back(memory_.value(graph_.nodes[n].out[output]));
  return tensors;
}

std::vector<Tensor> Network::labels(const Binding& binding) const {
  std::vector<Tensor> tensors;
  for (const size_t n : graph_.losses) tensors.push_back(binding.calls[n].in[1]);
  return tensors;
}

const LossLayer& Network::loss_layer(size_t loss) const {
  return dynamic_cast<const LossLayer&>(graph_.nodes[graph_.losses[loss]].layer());
}

std::vector<LossLayer::Regularizer> Network::regularizers() const {
  std::vector<LossLayer::Regularizer> all;
  for (size_t l = 0; l < graph_.losses.size(); ++l) all.push_back(loss_layer(l).regularizer());
  return all;
}

}  // namespace hctr
