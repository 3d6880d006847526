// Fusion patterns: Slices of the whole input, and Slices of slots followed by Reshapes.
#include <algorithm>

#include "net/fusion/fusion_pattern.h"
#include "net/layers/slot_columns_layer.h"

namespace hctr {
namespace {

/// If every range of a Slice covers the whole input, connects the readers of the Slice's outputs to that input and
/// returns true.
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

/// Matches a Slice whose rows are slots if the only reader of each of its outputs is a Reshape that puts a sample's
/// slots into one row. Replaces the Slice and the Reshapes by one node, which cuts the slots into columns directly.
/// Returns the replaced Reshapes; empty if the pattern does not match.
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

void pass_through_all(FusedGraph& fused) {
  for (size_t n = 0; n < fused.graph.nodes.size(); ++n)
    if (!fused.gone[n]) fused.gone[n] = pass_through(fused.graph, fused.graph.nodes[n]);
}

void join_all_reshapes(FusedGraph& fused) {
  for (size_t n = 0; n < fused.graph.nodes.size(); ++n) {
    if (fused.gone[n]) continue;
    for (const size_t reshape : join_reshapes(fused.graph, fused.graph.nodes[n])) fused.gone[reshape] = true;
  }
}

}  // namespace

const FusionPattern kWholeSlices = {"a Slice that keeps its whole input", pass_through_all};
const FusionPattern kSlotColumns = {"a Slice of slots and the Reshapes after it", join_all_reshapes};

}  // namespace hctr
