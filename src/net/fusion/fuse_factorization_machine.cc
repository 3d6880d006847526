// Fusion pattern: replaces the layers of a factorization machine with one layer.
#include <algorithm>
#include <optional>

#include "net/fusion/fusion_pattern.h"
#include "net/layers/factorization_machine_layer.h"
#include "ops/dense/factorization_machine.h"

namespace hctr {
namespace {

/// The node that wrote the tensor, if its layer has this type and the tensor has one reader; otherwise none.
std::optional<size_t> written_by(const Graph& graph, TensorId id, const char* type) {
  const Edge& edge = graph.edges[id];
  if (edge.readers.size() != 1 || !edge.producer || !is_layer(graph.nodes[*edge.producer], type)) return std::nullopt;
  return edge.producer;
}

/// The tensor's only reader, if its layer has this type.
std::optional<size_t> read_by(const Graph& graph, TensorId id, const char* type) {
  const std::vector<size_t>& readers = graph.edges[id].readers;
  if (readers.size() != 1 || !is_layer(graph.nodes[readers[0]], type)) return std::nullopt;
  return readers[0];
}

/// The nodes of one factorization machine, by role.
struct Machine {
  size_t slice, vectors, weights, all_vectors, all_weights, pairs, second, first;
  std::vector<size_t> all_but_one() const { return {slice, vectors, weights, all_weights, pairs, second, first}; }
};

bool puts_two_side_by_side(const Node& concat) {
  return concat.in.size() == 2 && concat.spec.memory == LayerSpec::Memory::columns_of_inputs;
}

/// Whether a ReduceSum adds up the columns of a matrix. Requires more than one column, because with one column and one
/// sample, a sum over rows has the same shapes. The match must not depend on the number of samples, because graphs for
/// training, evaluation and single samples share weights.
bool sums_columns(const Graph& graph, const Node& sum) {
  const TensorSpec &x = graph.edges[sum.in[0]].spec, &y = sum.spec.outputs[0];
  return x.shape.rank() == 2 && y.shape == Shape{x.rows(), 1} && x.row_elements() > 1;
}

std::optional<Machine> machine_of(const Graph& graph, size_t pairs) {
  Machine m{};
  m.pairs = pairs;
  const auto take = [](size_t& at, const std::optional<size_t>& node) {
    if (node) at = *node;
    return node.has_value();
  };
  const TensorId all = graph.nodes[pairs].in[0];
  const std::optional<size_t> producer = graph.edges[all].producer;
  if (!producer || !is_layer(graph.nodes[*producer], "Concat") || !puts_two_side_by_side(graph.nodes[*producer]))
    return std::nullopt;
  m.all_vectors = *producer;
  const auto output = [&](size_t node, size_t i = 0) { return graph.nodes[node].out[i]; };
  if (!take(m.vectors, written_by(graph, graph.nodes[m.all_vectors].in[0], "Reshape")) ||
      !take(m.slice, written_by(graph, graph.nodes[m.vectors].in[0], "Slice")) ||
      graph.nodes[m.slice].out.size() != 2 || graph.nodes[m.vectors].in[0] != output(m.slice) ||
      !take(m.weights, read_by(graph, output(m.slice, 1), "Reshape")) ||
      !take(m.all_weights, read_by(graph, output(m.weights), "Concat")) ||
      !puts_two_side_by_side(graph.nodes[m.all_weights]) || graph.nodes[m.all_weights].in[0] != output(m.weights) ||
      !take(m.first, read_by(graph, output(m.all_weights), "ReduceSum")) ||
      !take(m.second, read_by(graph, output(pairs), "ReduceSum")))
    return std::nullopt;
  return m;
}

/// Whether the shapes are slots with one vector and one weight each, within the operator's size limits.
bool shapes_fit(const Graph& graph, const Machine& m) {
  const auto output = [&](size_t node) -> const TensorSpec& { return graph.edges[graph.nodes[node].out[0]].spec; };
  const Node& slice = graph.nodes[m.slice];
  const TensorSpec &x = graph.edges[slice.in[0]].spec, &all = output(m.all_vectors);
  const int64_t dim = output(m.pairs).row_elements(), batch = output(m.pairs).rows();
  if (x.shape.rank() != 2 || all.shape.rank() != 2 || x.row_elements() != dim + 1 || batch == 0 ||
      x.rows() % batch != 0)
    return false;
  const int64_t slots = x.rows() / batch;
  return slice.spec.first_columns == std::vector<int64_t>{0, dim} && slice.spec.outputs[0].row_elements() == dim &&
         slice.spec.outputs[1].row_elements() == 1 && output(m.vectors).shape == Shape{batch, slots * dim} &&
         output(m.weights).shape == Shape{batch, slots} && all.row_elements() % dim == 0 && dim <= ops::kMostFmDim &&
         all.row_elements() <= ops::kMostFmColumns && sums_columns(graph, graph.nodes[m.second]) &&
         sums_columns(graph, graph.nodes[m.first]);
}

/// Whether one fused node can run in the place of the Concat of vectors: after its inputs are written and before its
/// outputs are read. Also checks that either all or none of the outputs have gradients.
bool order_fits(const Graph& graph, const Machine& m) {
  const auto& weights = graph.edges[graph.nodes[m.all_weights].in[1]];
  if (weights.producer && *weights.producer >= m.all_vectors) return false;
  const Edge& all = graph.edges[graph.nodes[m.all_vectors].out[0]];
  for (const size_t node : {m.second, m.first}) {
    const Edge& term = graph.edges[graph.nodes[node].out[0]];
    if (term.needs_gradient != all.needs_gradient ||
        std::any_of(term.readers.begin(), term.readers.end(), [&](size_t n) { return n <= m.all_vectors; }))
      return false;
  }
  return true;
}

void join_machine(Graph& graph, const Machine& m) {
  Node& node = graph.nodes[m.all_vectors];
  const TensorId x = graph.nodes[m.slice].in[0], weights = graph.nodes[m.all_weights].in[1];
  std::replace(graph.edges[x].readers.begin(), graph.edges[x].readers.end(), m.slice, m.all_vectors);
  std::replace(graph.edges[weights].readers.begin(), graph.edges[weights].readers.end(), m.all_weights, m.all_vectors);
  std::erase(graph.edges[node.out[0]].readers, m.pairs);
  node.in = {x, node.in[1], weights};
  node.out = {node.out[0], graph.nodes[m.second].out[0], graph.nodes[m.first].out[0]};
  for (const size_t gone : m.all_but_one()) {
    for (const TensorId out : graph.nodes[gone].out) {
      if (std::find(node.out.begin(), node.out.end(), out) == node.out.end()) graph.edges[out].disconnect();
    }
    graph.nodes[gone].in.clear();
  }
  for (const TensorId out : node.out) graph.edges[out].producer = m.all_vectors;
  node.fused = factorization_machine();
  Specs inputs;
  for (const TensorId in : node.in) inputs.push_back(graph.edges[in].spec);
  node.spec = node.layer().spec(inputs);
}

/// The pattern: a Slice cuts the slots of a table into vectors and single weights. One Reshape puts a sample's vectors
/// into one row, another Reshape puts a sample's weights into one row. Concats append other columns. An FmOrder2 and a
/// ReduceSum over the vectors compute the second-order term; a ReduceSum over the weights computes the first-order
/// term. One node replaces all these layers if no other layer reads the tensors between them.
void join_factorization_machines(FusedGraph& fused) {
  Graph& graph = fused.graph;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_layer(graph.nodes[n], "FmOrder2") || graph.nodes[n].in.empty()) continue;
    const std::optional<Machine> machine = machine_of(graph, n);
    if (!machine || !shapes_fit(graph, *machine) || !order_fits(graph, *machine)) continue;
    join_machine(graph, *machine);
    for (const size_t node : machine->all_but_one()) fused.gone[node] = true;
  }
}

}  // namespace

const FusionPattern kFactorizationMachines = {"a factorization machine", join_factorization_machines};

}  // namespace hctr
