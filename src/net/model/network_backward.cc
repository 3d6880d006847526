// The backward pass of a network, and its parts.
#include "core/device/profiler.h"
#include "net/graph/layer_bytes.h"
#include "net/graph/layer_part.h"
#include "net/model/network.h"
#include "ops/common/add.h"
#include "ops/common/fill.h"

namespace hctr {

void Network::backward_node(Context& ctx, const Binding& binding, size_t n) const {
  const Node& node = graph_.nodes[n];
  const ProfiledPart part = part_of(node, ctx, "backward", [&] { return bytes_backward(node.spec, binding.calls[n]); });
  in_context([&] { return cat("running ", label_of(node), " backward"); },
             [&] {
               for (const TensorId out : node.out) sum_gradients(ctx, out);
               if (!is_run_by_loss(n)) node.layer().backward(ctx, binding.calls[n]);
             });
}

void Network::backward(Context& ctx, const Binding& binding) const {
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    // no trained weight or row precedes the output of this node
    if (!graph_.edges[graph_.nodes[n].out[0]].needs_gradient) continue;
    backward_node(ctx, binding, n);
    const LayerIo& io = binding.calls[n];
    if (!io.d_weights.empty())
      backward_weights(ctx, binding, n, ctx.runtime().profiler() ? bytes_backward_weights(io) : 0);
  }
  for (size_t e = 0; e < graph_.embeddings.size(); ++e) sum_contributions(ctx, e);
}

void Network::sum_contributions(Context& ctx, size_t embedding) const {
  sum_gradients(ctx, graph_.embeddings[embedding]);
}

void Network::backward_weights(Context& ctx, const Binding& binding, size_t n, double bytes) const {
  if (writes_weights_in_backward(graph_.nodes[n].spec, binding.calls[n])) return;
  const ProfiledPart part = part_of(graph_.nodes[n], ctx, "weight gradients", [&] { return bytes; });
  in_context([&] { return cat("running ", label_of(graph_.nodes[n]), " backward"); },
             [&] { graph_.nodes[n].layer().backward_weights(ctx, binding.calls[n]); });
}

void Network::sum_gradients(Context& ctx, TensorId id) const {
  if (graph_.unread(id)) ops::fill(ctx, 0, memory_.gradient(id));
  if (!contributions_[id].empty()) ops::add(ctx, contributions_[id], memory_.gradient(id));
}

}  // namespace hctr
