// The backward pass of a network: gradients of inputs layer by layer, and when those of weights are queued.
#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "core/device/lockstep.h"
#include "core/device/profiler.h"
#include "net/graph/layer_bytes.h"
#include "net/graph/layer_part.h"
#include "net/model/network.h"
#include "ops/common/add.h"
#include "ops/common/fill.h"

namespace hctr {

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

/// When the gradients of weights are queued during backward().
class Network::WeightGradients {
 public:
  WeightGradients(const Network& network, Context& caller, const Binding& binding, const BackwardCallbacks& queued)
      : network_(network), caller_(caller), binding_(binding), queued_(queued), last_(caller) {}

  /// From this node on flush() queues nothing until release(), once gradients of embeddings are complete.
  void hold_from(std::optional<size_t> node) { held_ = node; }
  /// Sums, whose blocks are few, come first: what waits for embeddings on other streams gets multiprocessors before the
  /// products do.
  void release() {
    if (!std::exchange(holds_, false)) return;
    run_others(caller_);
  }
  /// The context of backward passes, which collects last launches.
  Context context() { return caller_.with_last_launches(&last_); }

  /// The gradients of the inputs of the node are queued.
  void add(Context& ctx, size_t node) {
    holds_ = holds_ || node == held_;
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
    if (holds_) return;
    for (const auto [node, to_the_end] : waiting_) {
      const double bytes = ctx.runtime().profiler() ? bytes_backward_weights(binding_.calls[node]) : 0;
      network_.backward_weights(ctx, binding_, node, to_the_end ? 0 : bytes);
      if (to_the_end) bytes_at_the_end_ += bytes;
      if (queued_.weights_reads && queued_.weights_reads(node)) run_collected();
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
    late.empty() || !queued_.weights_side ? run_collected() : finish_with_late(late);
    if (joins_) queued_.weights_side->join(caller_);
  }

 private:
  void run_collected() {
    const ProfiledPart part(caller_, "weight gradients", "weights", "sums and products of all layers",
                            {.bytes = std::exchange(bytes_at_the_end_, 0)});
    last_.run();
  }
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
  bool joins_ = false, holds_ = false;
  std::optional<size_t> held_;
};

void Network::backward(Context& caller, const Binding& binding, const BackwardCallbacks& queued) const {
  WeightGradients weights(*this, caller, binding, queued);
  weights.hold_from(products_before_embeddings(binding, queued.products_behind_embeddings));
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
    if (n == first_reader()) weights.release();
    weights.add(ctx, n);
    const bool tells = queued.embeddings_known && n == first_reader() && computes_before_embeddings();
    if (tells && weights.has_last_products()) queued.embeddings_known(ctx);
  }
  weights.finish(ctx);
}

std::optional<size_t> Network::products_before_embeddings(const Binding& binding, size_t most) const {
  std::optional<size_t> earliest;
  size_t products = 0;
  for (size_t n = first_reader() + 1; n < graph_.nodes.size() && products < most; ++n) {
    const Node& node = graph_.nodes[n];
    const LayerIo& io = binding.calls[n];
    if (io.d_weights.empty() || node.layer().writes_weights_in_backward(io)) continue;
    if (!node.spec.transient.empty()) break;
    if (std::ranges::none_of(io.d_weights, [](const Tensor& d_w) { return d_w.rows() > 1 && d_w.row_elements() > 1; }))
      continue;
    earliest = n;
    ++products;
  }
  return earliest;
}

void Network::backward_weights(Context& ctx, const Binding& binding, size_t n, double bytes) const {
  if (graph_.nodes[n].layer().writes_weights_in_backward(binding.calls[n])) return;
  const ProfiledPart part = part_of(graph_.nodes[n], ctx, "weight gradients", [&] { return bytes; });
  in_context([&] { return cat("running ", label_of(graph_.nodes[n]), " backward"); },
             [&] { graph_.nodes[n].layer().backward_weights(ctx, binding.calls[n]); });
}

void Network::sum_gradients(Context& ctx, TensorId id) const {
  if (graph_.unread(id)) ops::fill(ctx, 0, memory_.gradient(id));
  if (!contributions_[id].empty()) ops::add(ctx, contributions_[id], memory_.gradient(id));
}

}  // namespace hctr
