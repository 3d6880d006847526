#include "net/fusion/fuse_layers.h"

#include <algorithm>
#include <utility>

#include "net/fusion/fuse_factorization_machine.h"
#include "net/graph/fp8_scales.h"
#include "net/layers/slot_columns_layer.h"

namespace hctr {
namespace {

/// The node that alone reads the only output of `node`, if it reads nothing else.
std::optional<size_t> only_reader(const Graph& graph, const Node& node) {
  if (node.out.size() != 1) return std::nullopt;
  const Edge& between = graph.edges[node.out[0]];
  if (between.readers.size() != 1) return std::nullopt;
  const Node& reader = graph.nodes[between.readers[0]];
  return reader.in.size() == 1 && reader.out.size() == 1 ? std::optional(between.readers[0]) : std::nullopt;
}

/// Hands the input of a Slice whose ranges are all of it to those who read its outputs. Returns whether it is so.
bool pass_through(Graph& graph, Node& slice) {
  if (slice.spec.first_columns.empty() || slice.in.size() != 1) return false;
  const TensorId in = slice.in[0];
  const TensorSpec& x = graph.edges[in].spec;
  if (!std::all_of(slice.out.begin(), slice.out.end(), [&](TensorId out) { return graph.edges[out].spec == x; }))
    return false;
  std::vector<size_t>& readers = graph.edges[in].readers;
  std::erase(readers, static_cast<size_t>(&slice - graph.nodes.data()));
  for (const TensorId out : slice.out) {
    for (const size_t n : graph.edges[out].readers) {
      std::vector<TensorId>& read = graph.nodes[n].in;
      std::replace(read.begin(), read.end(), out, in);
      readers.push_back(n);
    }
    graph.edges[out].disconnect();
  }
  slice.in.clear();
  return true;
}

bool join(Graph& graph, Node& node, size_t reader) {
  const auto function = graph.nodes[reader].layer().element_function();
  if (!function) return false;
  auto both = node.layer().followed_by(*function);
  if (!both) return false;
  graph.edges[node.out[0]].disconnect();
  node.fused = std::move(both);
  node.out = graph.nodes[reader].out;
  node.spec = node.layer().spec({graph.edges[node.in[0]].spec});
  graph.nodes[reader].in.clear();
  return true;
}

/// Lets the only reader of each node that ends with ReLU finish its backward pass.
void finish_in_readers(Graph& graph) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.out.size() != 1) continue;
    const Edge& between = graph.edges[node.out[0]];
    if (between.readers.size() != 1 || !between.needs_gradient) continue;
    Node& reader = graph.nodes[between.readers[0]];
    const auto input =
        static_cast<size_t>(std::find(reader.in.begin(), reader.in.end(), node.out[0]) - reader.in.begin());
    if (!reader.layer().finishes_layer_below(input)) continue;
    auto layer = node.layer().finished_by_reader();
    if (!layer) continue;
    node.fused = std::move(layer);
    node.spec = node.layer().spec({graph.edges[node.in[0]].spec});
    reader.finishes.resize(reader.in.size());
    reader.finishes[input] = n;
  }
}

/// The node that wrote the tensor, if it is a layer of logits that one node alone reads.
std::optional<size_t> logit_layer_of(const Graph& graph, TensorId id) {
  const Edge& edge = graph.edges[id];
  if (!edge.producer || edge.readers.size() != 1 || !edge.needs_gradient) return std::nullopt;
  const Node& node = graph.nodes[*edge.producer];
  const bool trains_input =
      std::any_of(node.in.begin(), node.in.end(), [&](TensorId in) { return graph.edges[in].needs_gradient; });
  return node.layer().is_logit_layer() && trains_input ? edge.producer : std::nullopt;
}

/// Lets a loss run the layer of its logits, or that and an Add of its output and others.
void run_logit_layer(Graph& graph, Node& loss) {
  if (!dynamic_cast<const LossLayer&>(loss.layer()).runs_logit_layer()) return;
  const Edge& logits = graph.edges[loss.in[0]];
  std::optional<Node::LogitNodes> nodes;
  if (const auto layer = logit_layer_of(graph, loss.in[0])) {
    nodes = {*layer, std::nullopt};
  } else if (logits.producer && logits.readers.size() == 1) {
    const Node& sum = graph.nodes[*logits.producer];
    if (sum.fused || sum.entry->type->name() != "Add") return;
    for (const TensorId in : sum.in)
      if (const auto term = logit_layer_of(graph, in); term && !nodes) nodes = {*term, logits.producer};
  }
  if (!nodes) return;
  loss.logit = nodes;
  graph.nodes[nodes->layer].run_by_loss = true;
  if (nodes->sum) graph.nodes[*nodes->sum].run_by_loss = true;
}

/// Lets the only reader of a Concat of matrices read these.
bool join_concat(Graph& graph, Node& concat) {
  if (concat.spec.memory != LayerSpec::Memory::columns_of_inputs) return false;
  const auto reader = only_reader(graph, concat);
  if (!reader) return false;
  Specs parts;
  for (const TensorId in : concat.in) parts.push_back(graph.edges[in].spec);
  if (!std::all_of(parts.begin(), parts.end(), [](const TensorSpec& part) { return part.shape.rank() == 2; }))
    return false;
  Node& node = graph.nodes[*reader];
  auto both = node.layer().behind_concat(parts.size());
  if (!both) return false;
  graph.edges[concat.out[0]].disconnect();
  node.fused = std::move(both);
  node.in = std::exchange(concat.in, {});
  node.spec = node.layer().spec(parts);
  return true;
}

/// Cuts slots into columns at once where a Slice cuts rows that are slots, and a Reshape alone reads each of its
/// outputs to put the slots of a sample into one row. Returns the Reshapes, none if it is not so.
std::vector<size_t> join_reshapes(Graph& graph, Node& slice) {
  if (slice.spec.first_columns.empty() || slice.in.size() != 1) return {};
  const TensorSpec& x = graph.edges[slice.in[0]].spec;
  if (x.shape.rank() != 2 || x.rows() == 0) return {};
  std::vector<size_t> reshapes;
  std::vector<int64_t> widths;
  int64_t slots = 0, next = 0;
  for (size_t i = 0; i < slice.out.size(); ++i) {
    const Edge& part = graph.edges[slice.out[i]];
    if (part.readers.size() != 1 || slice.spec.first_columns[i] != next) return {};
    const Node& reshape = graph.nodes[part.readers[0]];
    const TensorSpec& y = graph.edges[reshape.out[0]].spec;
    if (reshape.spec.memory != LayerSpec::Memory::reshape_of_input || y.shape.rank() != 2 || y.rows() == 0) return {};
    const int64_t rows_joined = x.rows() / y.rows();
    if (rows_joined < 2 || rows_joined * y.rows() != x.rows() || (i > 0 && rows_joined != slots)) return {};
    slots = rows_joined;
    widths.push_back(part.spec.row_elements());
    next += widths.back();
    reshapes.push_back(part.readers[0]);
  }
  if (next != x.row_elements()) return {};
  for (size_t i = 0; i < reshapes.size(); ++i) {
    graph.edges[slice.out[i]].disconnect();
    slice.out[i] = graph.nodes[reshapes[i]].out[0];
    graph.nodes[reshapes[i]].in.clear();
  }
  slice.fused = slot_columns(slots, widths);
  slice.spec = slice.layer().spec({x});
  return reshapes;
}

/// Whether the gradient of a tensor is summed in another order in the second order of nodes than in the first.
bool changes_sums(const Graph& graph, const std::vector<size_t>& order, const std::vector<size_t>& other) {
  std::vector<size_t> place(graph.nodes.size());
  for (size_t i = 0; i < other.size(); ++i) place[other[i]] = i;
  std::vector<std::vector<size_t>> readers(graph.edges.size());
  for (const size_t n : order)
    for (const TensorId in : graph.nodes[n].in) readers[in].push_back(place[n]);
  for (TensorId id = 0; id < readers.size(); ++id)
    if (graph.edges[id].needs_gradient && readers[id].size() > 2 &&  // a sum of two is the same both ways
        !std::is_sorted(readers[id].begin(), readers[id].end()))
      return true;
  return false;
}

/// The nodes that are left, in running order: first those that need no embedding, which can run during lookups, and
/// whose backward pass no embedding's gradient waits for; then the others and losses.
std::vector<size_t> running_order(const Graph& graph, const std::vector<bool>& gone) {
  std::vector<bool> waits(graph.edges.size(), false);
  for (const TensorId embedding : graph.embeddings) waits[embedding] = true;
  std::vector<size_t> as_they_are, first, later;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (gone[n]) continue;
    const Node& node = graph.nodes[n];
    const bool late =
        node.is_loss() || std::any_of(node.in.begin(), node.in.end(), [&](TensorId in) { return waits[in]; });
    for (const TensorId out : node.out) waits[out] = late;
    as_they_are.push_back(n);
    (late ? later : first).push_back(n);
  }
  first.insert(first.end(), later.begin(), later.end());
  return graph.embeddings.empty() || changes_sums(graph, as_they_are, first) ? as_they_are : first;
}

}  // namespace

void fuse_layers(Graph& graph, const Precision& products) {
  std::vector<bool> gone(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) gone[n] = pass_through(graph, graph.nodes[n]);
  for (const size_t n : join_factorization_machines(graph)) gone[n] = true;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (gone[n]) continue;
    while (const auto reader = only_reader(graph, graph.nodes[n])) {
      if (!join(graph, graph.nodes[n], *reader)) break;
      gone[*reader] = true;
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!gone[n]) gone[n] = join_concat(graph, graph.nodes[n]);
    if (gone[n]) continue;
    for (const size_t reshape : join_reshapes(graph, graph.nodes[n])) gone[reshape] = true;
  }
  std::vector<size_t> now(graph.nodes.size());  // the new index of each node that stays
  std::vector<Node> kept;
  for (const size_t n : running_order(graph, gone)) {
    now[n] = kept.size();
    kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  for (Edge& edge : graph.edges) edge.readers.clear();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const TensorId in : graph.nodes[n].in) graph.edges[in].readers.push_back(n);
    for (const TensorId out : graph.nodes[n].out) graph.edges[out].producer = n;
  }
  for (size_t& loss : graph.losses) loss = now[loss];
  for (const size_t loss : graph.losses) {
    Node& node = graph.nodes[loss];
    if (auto layer = dynamic_cast<const LossLayer&>(node.layer()).with_gradient_in_forward())
      node.fused = std::move(layer);
  }
  use_fp8_products(graph, products);
  finish_in_readers(graph);
  for (const size_t loss : graph.losses) run_logit_layer(graph, graph.nodes[loss]);
}

}  // namespace hctr
