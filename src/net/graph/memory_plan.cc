#include "net/graph/memory_plan.h"

namespace hctr {
namespace {

/// Aligns rows to 16 bytes, so that kernels and GEMMs can use wide loads for any row width. The padding is zero at the
/// start. Only GEMMs write to it, and they write zeros, because they multiply by zeros. The padding therefore stays
/// zero.
TensorSpec with_padded_rows(const TensorSpec& spec) {
  const int64_t unit = 16 / static_cast<int64_t>(size_of(spec.dtype)), width = spec.row_elements();
  if (spec.shape.rank() < 2 || width < unit) return spec;
  TensorSpec wide(spec.dtype, spec.shape, (width + unit - 1) / unit * unit);
  wide.zero_columns = wide.row_stride - width;
  return wide;
}

constexpr int64_t kWideBytes = 256;

/// Whether a layer wrote the tensor to memory of its own. False for an embedding, which may change its gradient in
/// place, and for a view, which may pass its gradient on to an embedding.
bool made_by_layer(const Graph& graph, const Edge& edge) {
  return edge.producer && graph.nodes[*edge.producer].spec.memory == LayerSpec::Memory::own;
}

}  // namespace

BatchLayout batch_layout(const Config& config, int64_t samples, Device device) {
  const BatchShape shape = batch_shape(config.data, samples);
  const DType dtype = config.solver.mixed_precision.activations;
  if (!device.is_cuda() || config.solver.tf32x3()) return BatchLayout(shape);
  const int64_t stride = with_padded_rows(TensorSpec(dtype, {samples, shape.dense_dim})).row_stride;
  // rows shorter than 16 bytes are not padded
  if (stride * static_cast<int64_t>(size_of(dtype)) % 16 != 0) return BatchLayout(shape);
  return BatchLayout(shape, stride, dtype);
}

bool MemoryPlan::takes_as_data(const Graph& graph, const Tensor& dense) const {
  if (is_data(*graph.dense)) return true;
  const Edge& edge = graph.edges[*graph.dense];
  return dense.dtype() == edge.spec.dtype && std::ranges::all_of(edge.readers, [&](size_t reader) {
           // a layer with outputs in memory of its own accepts inputs with any column offset and stride
           return graph.nodes[reader].spec.memory == LayerSpec::Memory::own;
         });
}

MemoryPlan::MemoryPlan(const Graph& graph, Phase phase, Device device) : MemoryPlan(graph, phase) {
  arena_.build(device);
}

MemoryPlan::MemoryPlan(const Graph& graph, Phase phase)
    : label_(graph.label),
      dense_(graph.dense && graph.edges[*graph.dense].spec.dtype == DType::f32 ? graph.dense : std::nullopt),
      keep_dense_(graph.edges.size(), false),
      values_(graph.edges.size()),
      gradients_(graph.edges.size()),
      contributions_(graph.nodes.size()),
      scratch_(graph.nodes.size()),
      to_sum_(graph.edges.size()) {
  for (const Node& node : graph.nodes)
    if (node.spec.memory == LayerSpec::Memory::reshape_of_input &&
        graph.edges[node.in[0]].spec.rows() != graph.edges[node.out[0]].spec.rows())
      keep_dense_[node.in[0]] = keep_dense_[node.out[0]] = true;
  if (dense_ && keep_dense_[*dense_]) dense_.reset();
  for (const size_t loss : graph.losses)
    for (const TensorId out : graph.nodes[loss].out)
      keep_dense_[out] = true;  // the host reads predictions as one contiguous block
  place_values(graph);
  if (phase == Phase::train) place_gradients(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (size_t s = 0; s < graph.nodes[n].spec.scratch.size(); ++s) {
      const LayerSpec& layer = graph.nodes[n].spec;
      const bool unused = phase == Phase::evaluate && std::ranges::count(layer.scratch_of_backward, s) > 0;
      scratch_[n].push_back(own(unused ? TensorSpec(layer.scratch[s].dtype, {0}) : layer.scratch[s], true));
    }
  place_transient(graph);
}

void MemoryPlan::place_transient(const Graph& graph) {
  Specs largest;
  for (const Node& node : graph.nodes) {
    const Specs& specs = transient_.emplace_back(node.spec.transient);
    if (specs.size() > largest.size()) largest.resize(specs.size());
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].bytes() > largest[i].bytes()) largest[i] = specs[i];
  }
  for (const TensorSpec& spec : largest) transient_tickets_.push_back(arena_.add(spec));
}

MemoryPlan::ArenaRegion MemoryPlan::own(const TensorSpec& spec, bool dense) {
  const TensorSpec mine = dense ? spec : with_padded_rows(spec);
  return {arena_.add(mine), 0, mine};
}

Tensor MemoryPlan::at(const ArenaRegion& region) const {
  const Tensor whole = arena_.get(region.ticket);
  return Tensor(whole.bytes() + static_cast<size_t>(region.offset) * size_of(region.spec.dtype), region.spec,
                whole.device());
}

MemoryPlan::ArenaRegion MemoryPlan::columns(const ArenaRegion& region, int64_t begin, const TensorSpec& spec) {
  ArenaRegion part{region.ticket, region.offset + begin, TensorSpec(spec.dtype, spec.shape, region.spec.row_stride)};
  if (begin + spec.row_elements() == region.spec.row_elements()) part.spec.zero_columns = region.spec.zero_columns;
  return part;
}

std::optional<MemoryPlan::ArenaRegion> MemoryPlan::reshaped(const ArenaRegion& region, const TensorSpec& spec) {
  if (region.spec.rows() == spec.rows())
    return ArenaRegion{region.ticket, region.offset, TensorSpec(spec.dtype, spec.shape, region.spec.row_stride)};
  if (region.spec.dense()) return ArenaRegion{region.ticket, region.offset, spec};
  return std::nullopt;
}

std::optional<MemoryPlan::ArenaRegion> MemoryPlan::shared_part(const Graph& graph, const Node& node, size_t input,
                                                               const ArenaRegion& output) {
  const TensorSpec& spec = graph.edges[node.in[input]].spec;
  switch (node.spec.memory) {
    case LayerSpec::Memory::own:
      return std::nullopt;
    case LayerSpec::Memory::reshape_of_input:
      return reshaped(output, spec);
    case LayerSpec::Memory::columns_of_inputs:
      break;
  }
  int64_t begin = 0;
  for (size_t i = 0; i < input; ++i) begin += graph.edges[node.in[i]].spec.row_elements();
  // Narrow columns are accessed element by element in any case. For a wide Concat column that does not begin at a
  // multiple of 16 bytes, element-wise writes and GEMMs are several times slower than a copy from aligned memory.
  const auto bytes = static_cast<int64_t>(size_of(spec.dtype));
  if (begin * bytes % 16 != 0 && spec.row_elements() * bytes >= kWideBytes) return std::nullopt;
  return columns(output, begin, spec);
}

void MemoryPlan::place_values(const Graph& graph) {
  // Visits layers from last to first, so that a reader's region is known before its inputs are placed.
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (const TensorId out : node.out)
      if (!values_[out]) values_[out] = own(graph.edges[out].spec, keep_dense_[out]);
    for (size_t i = 0; i < node.in.size(); ++i) {
      const TensorId in = node.in[i];
      if (is_data(in) || values_[in]) continue;
      auto shared = shared_part(graph, node, i, *values_[node.out[0]]);
      if (shared && keep_dense_[in] && !shared->spec.dense()) shared.reset();
      values_[in] = shared;
    }
  }
  std::vector<TensorId> sources = graph.embeddings;
  for (const auto& lengths : graph.lengths)
    if (lengths) sources.push_back(*lengths);
  if (graph.dense && !is_data(*graph.dense)) sources.push_back(*graph.dense);
  for (const TensorId source : sources)
    if (!values_[source]) values_[source] = own(graph.edges[source].spec, keep_dense_[source]);
}

void MemoryPlan::place_gradients(const Graph& graph) {
  const auto settle = [&](TensorId id) {  // called once all readers of `id` have placed their contributions
    const Edge& edge = graph.edges[id];
    if (graph.unread(id)) gradients_[id] = own(edge.spec, keep_dense_[id]);
    if (!edge.needs_gradient || edge.readers.empty()) return;
    std::vector<ArenaRegion> parts;
    for (size_t r = 0; r < edge.readers.size(); ++r) {
      const Node& reader = graph.nodes[edge.readers[r]];
      if (r > 0 && edge.readers[r] == edge.readers[r - 1])
        continue;  // if the layer reads `id` several times, the first visit has added all regions
      for (size_t i = 0; i < reader.in.size(); ++i)
        if (reader.in[i] == id) parts.push_back(*contributions_[edge.readers[r]][i]);
    }
    if (parts.size() == 1) {
      gradients_[id] = parts[0];
    } else {
      gradients_[id] = own(edge.spec, keep_dense_[id]);
      to_sum_[id] = parts;
    }
  };
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (const TensorId out : node.out) settle(out);
    for (size_t i = 0; i < node.in.size(); ++i) {
      const Edge& edge = graph.edges[node.in[i]];
      std::optional<ArenaRegion> region;
      if (edge.needs_gradient) {
        if (gradients_[node.out[0]])
          region = node.spec.hands_gradient_on && made_by_layer(graph, edge)
                       ? gradients_[node.out[0]]
                       : shared_part(graph, node, i, *gradients_[node.out[0]]);
        if (region && keep_dense_[node.in[i]] && !region->spec.dense()) region.reset();
        if (!region) region = own(edge.spec, keep_dense_[node.in[i]]);
      }
      contributions_[n].push_back(region);
    }
  }
  for (const TensorId embedding : graph.embeddings) settle(embedding);
}

std::optional<Tensor> MemoryPlan::contribution(size_t node, size_t input) const {
  const auto& region = contributions_[node][input];
  return region ? std::optional(at(*region)) : std::nullopt;
}

Tensor MemoryPlan::value(TensorId id) const {
  HCTR_EXPECT(values_[id], "tensor ", id, " shares a memory region");
  return at(*values_[id]);
}

Tensor MemoryPlan::gradient(TensorId id) const {
  HCTR_EXPECT(gradients_[id], "tensor ", id, " has no gradient");
  return at(*gradients_[id]);
}

Tensor MemoryPlan::scratch(size_t node, size_t index) const { return at(scratch_[node][index]); }

std::vector<Tensor> MemoryPlan::transient(size_t node) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < transient_[node].size(); ++i) {
    const Tensor whole = arena_.get(transient_tickets_[i]);
    tensors.emplace_back(whole.bytes(), transient_[node][i], whole.device());
  }
  return tensors;
}

std::vector<MemoryPlan::Sum> MemoryPlan::sums() const {
  std::vector<Sum> sums;
  for (TensorId id = 0; id < to_sum_.size(); ++id) {
    if (to_sum_[id].empty()) continue;
    Sum sum{id, {}};
    for (const ArenaRegion& region : to_sum_[id]) sum.contributions.push_back(at(region));
    sums.push_back(std::move(sum));
  }
  return sums;
}

}  // namespace hctr
