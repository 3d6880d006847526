#include "net/model/network.h"

#include <algorithm>
#include <set>
#include <span>

#include "core/base/expect.h"
#include "core/device/profiler.h"
#include "net/graph/layer_bytes.h"
#include "net/graph/layer_part.h"
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
  Work work;  // reads weights and writes copies
  for (const auto& [w, copy] : all) work.bytes += static_cast<double>(w.spec().bytes() + copy.spec().bytes());
  const ProfiledPart part(ctx, "forward", "weights", "transposed copies", work);
  ops::transpose_weights(ctx, all);
}

/// The only reader of an embedding, if it searches the gradient that it writes for it.
std::optional<size_t> searching_node(const Graph& graph, TensorId embedding) {
  const std::vector<size_t>& readers = graph.edges[embedding].readers;
  if (readers.size() != 1) return std::nullopt;
  const Node& node = graph.nodes[readers[0]];
  const auto input = node.layer().searched_input();
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
      first_reads_(graph.nodes.size()),
      contributions_(graph.edges.size()) {
  for (size_t e = 0; e < graph.embeddings.size(); ++e) {
    const auto reads = [&](const Node& node) {
      return std::find(node.in.begin(), node.in.end(), graph.embeddings[e]) != node.in.end();
    };
    const auto first = std::find_if(graph.nodes.begin(), graph.nodes.end(), reads);
    const bool unread = first == graph.nodes.end();
    // The gradient of an embedding that no layer reads is zeroed with the first loss, which always runs backward.
    searched_by_.push_back(searching_node(graph, graph.embeddings[e]));
    first_reads_[unread ? graph.losses[0] : static_cast<size_t>(first - graph.nodes.begin())].push_back(e);
  }
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
  const auto input = [&](TensorId in) {
    if (in == graph_.label) return label;
    return graph_.dense == in && !copies_dense ? *dense : memory_.value(in);
  };
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    LayerIo io;
    for (const TensorId in : node.in) io.in.push_back(input(in));
    for (const TensorId out : node.out) io.out.push_back(memory_.value(out));
    for (size_t s = 0; s < node.spec.scratch.size(); ++s) io.scratch.push_back(memory_.scratch(n, s));
    io.transient = memory_.transient(n);
    if (scales) io.fp8 = scales->of_node(n);
    io.weights = weights_.of_node(n);
    io.transposed = weights_.transposed_of_node(n);
    io.state = state_.of_node(n);
    if (phase_ == Phase::train) {
      for (size_t i = 0; i < node.in.size(); ++i) io.d_in.push_back(memory_.contribution(n, i));
      for (const TensorId out : node.out)
        if (memory_.has_gradient(out)) io.d_out.push_back(memory_.gradient(out));
      io.d_weights = weights_.gradients_of_node(n);
      if (node.logit) io.logit = logit_io(binding, *node.logit);
      for (const auto& below : node.finishes)
        io.below.push_back(below ? std::optional(graph_.nodes[*below].layer().relu_end(binding.calls[*below]))
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
  LogitIo io{graph_.nodes[nodes.layer].layer().logit_layer(binding.calls[nodes.layer]), std::nullopt};
  if (nodes.sum) {
    const LayerIo& sum = binding.calls[*nodes.sum];
    io.sum = {sum.in, sum.d_in, sum.out[0]};
  }
  return io;
}

std::optional<size_t> Network::runs_beside_until(const Binding& binding, size_t n, const SideStream* beside) const {
  const Node& node = graph_.nodes[n];
  if (!beside || !graph_.edges[node.out[0]].needs_gradient || !node.layer().runs_beside(binding.calls[n]))
    return std::nullopt;
  size_t first = graph_.nodes.size();
  for (const TensorId out : node.out)
    for (const size_t reader : graph_.edges[out].readers) first = std::min(first, reader);
  return first > n + 1 && first < graph_.nodes.size() ? std::optional(first) : std::nullopt;
}

void Network::before_lookup(Context& ctx, const Binding& binding, SideStream& beside) const {
  if (computes_before_embeddings())
    return write_transposed_weights(ctx, transposed_weights_of(std::span(binding.calls).first(first_reader())));
  const std::vector<ops::TransposedWeights> all = transposed_weights_of(binding.calls);
  if (all.empty()) return;
  Context side = beside.after(ctx);
  write_transposed_weights(side, all);
}

std::optional<size_t> Network::transpose_weights(Context& ctx, const Binding& binding, SideStream* beside) const {
  const std::vector<ops::TransposedWeights> all = transposed_weights_of(binding.calls);
  if (all.empty()) return std::nullopt;
  if (!beside) {
    write_transposed_weights(ctx, all);
    return std::nullopt;
  }
  if (!computes_before_embeddings()) return 0;
  Context side = beside->after(ctx);
  write_transposed_weights(side, transposed_weights_of(std::span(binding.calls).subspan(first_reader())));
  return first_reader();
}

void Network::forward_node(Context& ctx, const Binding& binding, size_t n) const {
  const ProfiledPart part = part_of(graph_.nodes[n], ctx, "forward", [&] { return bytes_forward(binding.calls[n]); });
  in_context([&] { return cat("running ", label_of(graph_.nodes[n]), " forward"); },
             [&] { graph_.nodes[n].layer().forward(ctx, binding.calls[n], phase_); });
}

void Network::write_weight_copies(Context& ctx, const Binding& binding) const {
  write_transposed_weights(ctx, transposed_weights_of(binding.calls));
}

void Network::forward(Context& ctx, const Binding& binding, const std::function<Context(size_t node)>& before,
                      SideStream* beside) const {
  if (phase_ == Phase::evaluate && !ctx.ordered_products()) {
    Context ordered = ctx.with_ordered_products();
    return forward(ordered, binding, before, beside);
  }
  if (binding.dense) {
    const ProfiledPart part(ctx, "forward", "Cast", "dense", {});
    ops::copy(ctx, *binding.dense, memory_.value(*graph_.dense));
  }
  std::set<size_t> joins;  // the nodes that read what the side stream writes
  if (!binding.weights_are_fixed)
    if (const auto first = transpose_weights(ctx, binding, beside)) joins.insert(*first);
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    Context own = before ? before(n) : ctx;
    if (joins.contains(n)) beside->join(ctx);
    if (is_run_by_loss(n)) continue;
    if (const auto until = runs_beside_until(binding, n, beside)) {
      Context side = beside->after(ctx);
      forward_node(side, binding, n);
      joins.insert(*until);
    } else {
      forward_node(own, binding, n);
    }
  }
  if (!total_) return;
  const ProfiledPart part(ctx, "forward", "loss", "sum of losses");
  ops::fill(ctx, 0, loss());
  for (size_t l = 0; l < graph_.losses.size(); ++l)
    ops::add_scaled(ctx, losses()[l], static_cast<float>(loss_layer(l).weight()), loss());
}

size_t Network::first_reader() const {
  const auto first =
      std::find_if(first_reads_.begin(), first_reads_.end(), [](const auto& read) { return !read.empty(); });
  return static_cast<size_t>(first - first_reads_.begin());
}

bool Network::has_relu_before_embeddings() const {
  const size_t first = first_reader();
  return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
    return std::any_of(node.finishes.begin(), node.finishes.end(),
                       [&](const auto& below) { return below && *below < first; });
  });
}

bool Network::computes_before_embeddings() const {
  const auto end = graph_.nodes.begin() + static_cast<std::ptrdiff_t>(first_reader());
  return std::any_of(graph_.nodes.begin(), end, [](const Node& node) { return !node.spec.weights.empty(); }) &&
         std::none_of(graph_.nodes.begin(), end, [](const Node& node) { return node.is_loss(); });
}

bool Network::keeps_busy_before_embeddings(const Binding& binding) const {
  if (!computes_before_embeddings()) return false;
  const size_t layer = first_reader() - 1;
  const LayerIo& io = binding.calls[layer];
  // A layer of several products would keep the sums waiting for all of them.
  if (graph_.nodes[layer].spec.weights.empty() || graph_.nodes[layer].spec.weights.size() > 2) return false;
  if (io.d_in.size() != 1 || !io.d_in[0]) return false;
  const Tensor& d_x = *io.d_in[0];
  return ops::keeps_gpu_busy(d_x.device(), d_x.rows(), d_x.row_elements());
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
