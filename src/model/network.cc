#include "model/network.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/error.h"
#include "device/lockstep.h"
#include "device/profiler.h"
#include "model/layer_bytes.h"
#include "ops/add.h"
#include "ops/copy.h"
#include "ops/fill.h"
#include "ops/linear.h"
#include "ops/transposed_weights.h"

namespace hctr {
namespace {

std::string label_of(const Node& node) {
  return cat("layer '", node.entry->tops[0], "' (", node.entry->type->name(), ")");
}

/// The part of a profile in which a layer runs. Its bytes are counted only for a profile.
template <class Bytes>
ProfiledPart part_of(const Node& node, Context& ctx, std::string_view part, const Bytes& bytes) {
  return {ctx, part, node.entry->type->name(), node.entry->tops[0],
          ctx.runtime().profiler() ? Work{.bytes = bytes()} : Work{}};
}

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

Network::Binding Network::bind(Tensor label, std::optional<Tensor> dense, ops::OverflowSearch search,
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
  for (LayerIo& io : binding.calls) io.operands = search;
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

void Network::backward_node(Context& ctx, const Binding& binding, size_t n) const {
  const Node& node = graph_.nodes[n];
  const ProfiledPart part =
      part_of(node, ctx, "backward", [&] { return bytes_backward(node.spec, node.layer(), binding.calls[n]); });
  in_context([&] { return cat("running ", label_of(node), " backward"); },
             [&] {
               for (const TensorId out : node.out) sum_gradients(ctx, out);
               if (!is_run_by_loss(n)) node.layer().backward(ctx, binding.calls[n]);
             });
}

void Network::forward(Context& ctx, const Binding& binding, const std::function<Context(size_t node)>& before,
                      SideStream* beside) const {
  if (binding.dense) {
    const ProfiledPart part(ctx, "forward", "Cast", "dense", {});
    ops::copy(ctx, *binding.dense, memory_.value(*graph_.dense));
  }
  std::set<size_t> joins;  // the nodes that read what the side stream writes
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

/// When the gradients of weights are queued during backward().
class Network::WeightGradients {
 public:
  WeightGradients(const Network& network, Context& caller, const Binding& binding, const BackwardCallbacks& queued)
      : network_(network), caller_(caller), binding_(binding), queued_(queued), last_(caller) {}

  /// The context of backward passes: it collects last launches, unless somebody reads their results before.
  Context context() { return queued_.weights_reads ? caller_ : caller_.with_last_launches(&last_); }

  /// The gradients of the inputs of the node are queued.
  void add(Context& ctx, size_t node) {
    const LayerIo& io = binding_.calls[node];
    const Layer& layer = network_.graph_.nodes[node].layer();
    const bool any = !io.d_weights.empty() && !layer.writes_weights_in_backward(io);
    const auto run = any ? layer.weights_run(ctx, io) : ops::WeightGradientRun::in_order;
    if (run == ops::WeightGradientRun::apart && queued_.weights_side && !queued_.weights_reads)
      apart_.push_back({node, queued_.weights_side->after(ctx)});
    else
      waiting_.push_back({node, run == ops::WeightGradientRun::together && ctx.last_launches()});
  }
  /// Queues those on the compute stream.
  void flush(Context& ctx) {
    for (const auto [node, to_the_end] : waiting_) {
      const double bytes = ctx.runtime().profiler() ? bytes_backward_weights(binding_.calls[node]) : 0;
      network_.backward_weights(ctx, binding_, node, to_the_end ? 0 : bytes);
      if (to_the_end) bytes_at_the_end_ += bytes;
      queued_.weights(node);
    }
    waiting_.clear();
  }
  /// Queues those on the side stream, which waits for no more than their own layers: call it once the next backward
  /// pass is queued, so that the GPU sees that one first.
  void flush_apart() {
    for (Apart& one : apart_) {
      const double bytes = one.ctx.runtime().profiler() ? bytes_backward_weights(binding_.calls[one.node]) : 0;
      network_.backward_weights(one.ctx, binding_, one.node, bytes);
      queued_.weights(one.node);
    }
    joins_ = joins_ || !apart_.empty();
    apart_.clear();
  }
  /// Whether products of what was added will be the last launches.
  bool has_last_products() const {
    return !last_.late().empty() || std::ranges::any_of(waiting_, &Waiting::to_the_end);
  }
  /// All others, and what they wait for.
  void finish(Context& ctx) {
    flush(ctx);
    flush_apart();
    const std::vector<Lockstep::LateResult> late(last_.late().begin(), last_.late().end());
    if (late.empty() || !queued_.weights_side) {
      const ProfiledPart part(caller_, "weight gradients", "weights", "sums and products of all layers",
                              {.bytes = bytes_at_the_end_});
      last_.run();
    } else {
      finish_with_late(late);
    }
    if (joins_) queued_.weights_side->join(caller_);
  }

 private:
  /// Where gradients of embeddings were complete before those of the first layers, products are queued first, since
  /// they need whole multiprocessors, and the others run beside. Else the others are first, and tables, whose updates
  /// take longest then, get multiprocessors before products do.
  void finish_with_late(std::span<const Lockstep::LateResult> late) {
    if (!network_.computes_before_embeddings()) {
      run_others(caller_);
      return run_products();
    }
    Context others = queued_.weights_side->after(caller_);
    joins_ = true;
    run_products();
    run_others(others);
    const auto is_f16 = [](const Lockstep::LateResult& one) { return one.operands == DType::f16; };
    if (queued_.before_late && std::ranges::all_of(late, is_f16)) queued_.before_late(others, late);
  }
  void run_others(Context& ctx) {
    const ProfiledPart part(ctx, "weight gradients", "weights", "sums of all layers");
    last_.run_first(ctx);
  }
  void run_products() {
    const ProfiledPart part(caller_, "weight gradients", "weights", "products of all layers",
                            {.bytes = bytes_at_the_end_});
    last_.run_late(caller_);
  }

  struct Waiting {
    size_t node;
    bool to_the_end;  // its product is one of the last launches
  };
  struct Apart {
    size_t node;
    Context ctx;
  };
  const Network& network_;
  Context& caller_;
  const Binding& binding_;
  const BackwardCallbacks& queued_;
  Lockstep last_;
  std::vector<Waiting> waiting_;
  std::vector<Apart> apart_;
  double bytes_at_the_end_ = 0;  // for a profile
  bool joins_ = false;
};

void Network::backward(Context& caller, const Binding& binding, const BackwardCallbacks& queued) const {
  WeightGradients weights(*this, caller, binding, queued);
  Context ctx = weights.context();
  std::set<size_t> started;  // nodes whose backward passes are queued on the side stream
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const Node& node = graph_.nodes[n];
    if (!graph_.edges[node.out[0]].needs_gradient) continue;  // nothing is trained in it or before it
    if (node.spec.memory == LayerSpec::Memory::own) weights.flush(ctx);
    if (started.contains(n))
      queued.beside->join(ctx);
    else
      backward_node(ctx, binding, n);
    for (const size_t e : first_reads_[n]) sum_gradients(ctx, graph_.embeddings[e]);
    for (size_t earlier = 0; earlier < n; ++earlier)
      if (runs_beside_until(binding, earlier, queued.beside) == n) {  // all who read it have written their gradients
        Context side = queued.beside->after(ctx).with_last_launches(ctx.last_launches());
        backward_node(side, binding, earlier);
        started.insert(earlier);
      }
    weights.flush_apart();
    queued.inputs(n);
    weights.add(ctx, n);
    const bool tells = queued.embeddings_known && n == first_reader() && computes_before_embeddings();
    if (tells && weights.has_last_products()) queued.embeddings_known(ctx);
  }
  weights.finish(ctx);
}

void Network::backward_weights(Context& ctx, const Binding& binding, size_t n, double bytes) const {
  if (graph_.nodes[n].layer().writes_weights_in_backward(binding.calls[n])) return;
  const ProfiledPart part = part_of(graph_.nodes[n], ctx, "weight gradients", [&] { return bytes; });
  in_context([&] { return cat("running ", label_of(graph_.nodes[n]), " backward"); },
             [&] { graph_.nodes[n].layer().backward_weights(ctx, binding.calls[n]); });
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

void Network::sum_gradients(Context& ctx, TensorId id) const {
  if (graph_.unread(id)) ops::fill(ctx, 0, memory_.gradient(id));
  if (!contributions_[id].empty()) ops::add(ctx, contributions_[id], memory_.gradient(id));
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
