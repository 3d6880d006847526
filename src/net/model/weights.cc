#include "net/model/weights.h"

#include <algorithm>

#include "config/sections/optimizer_catalog.h"
#include "core/device/copy_bytes.h"
#include "net/layers/initializer.h"
#include "net/model/gradient_ranges.h"
#include "ops/common/copy.h"
#include "ops/common/fill.h"
#include "ops/gemm/transposed_weights.h"
#include "ops/optimizer/clip.h"
#include "ops/optimizer/penalty.h"

namespace hctr {
namespace {

ops::Penalty penalty_of(LossLayer::Regularizer::Kind kind) {
  return kind == LossLayer::Regularizer::Kind::l1 ? ops::Penalty::l1 : ops::Penalty::l2;
}

/// The factor of the penalty. L2: lambda / (2 batch), multiplied by the sum of w^2. L1: lambda / batch, multiplied by
/// the sum of |w|.
float penalty_factor(const LossLayer::Regularizer& regularizer, int64_t samples, int ranks) {
  const double half = regularizer.kind == LossLayer::Regularizer::Kind::l2 ? 0.5 : 1.0;
  return static_cast<float>(half * regularizer.lambda / static_cast<double>(samples) / ranks);
}

/// Elements [first, end) of a flat tensor.
Tensor part_of(const Tensor& all, int64_t first, int64_t end) {
  const TensorSpec spec(all.dtype(), {end - first});
  return Tensor(all.bytes() + static_cast<size_t>(first) * size_of(all.dtype()), spec, all.device());
}

/// Pads matrices with zero rows to a multiple of eight, to match activations padded with zero columns. A GEMM over 429
/// columns runs as a GEMM over 432. The padding stays zero, because its gradients are sums of products with zeros, and
/// optimizers do not change a zero that has no gradient.
TensorSpec with_zero_rows(const Shape& shape) {
  TensorSpec spec(DType::f32, shape);
  if (shape.rank() == 2 && shape[0] >= 8) spec.zero_rows = (shape[0] + 7) / 8 * 8 - shape[0];
  return spec;
}

}  // namespace

std::vector<GradientRange> gradient_ranges(const Config& config, const Graph& graph) {
  Arena gradients;
  std::vector<GradientRange> ranges;
  for (const LayerEntry& entry : config.layers)
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].entry != &entry) continue;
      for (const WeightSpec& weight : graph.nodes[n].spec.weights) {
        const auto begin = static_cast<int64_t>(gradients.bytes() / sizeof(float));
        gradients.add(with_zero_rows(weight.shape));
        ranges.push_back({n, begin, static_cast<int64_t>(gradients.bytes() / sizeof(float))});
      }
    }
  return ranges;
}

Weights::Weights(const Config& config, const Graph& graph, Runtime& runtime, ReplicaUse use)
    : use_(use),
      most_norm_(config.solver.clip_gradient_norm.value_or(0)),
      optimizer_(config.optimizer.rule(config.optimizer.hyper.learning_rate)) {
  // The file has the order of the config, which may differ from the running order.
  std::vector<const WeightSpec*> specs;
  for (const LayerEntry& entry : config.layers)
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].entry != &entry) continue;
      for (const WeightSpec& weight : graph.nodes[n].spec.weights) {
        const TensorSpec spec = with_zero_rows(weight.shape);
        const DType read_as = graph.nodes[n].spec.outputs[0].dtype;
        items_.push_back({entry.tops[0] + "/" + weight.name, n, values_.add(spec), gradients_.add(spec),
                          weight.penalised, read_as != DType::f32,
                          std::ranges::count(config.solver.frozen, entry.tops[0]) > 0});
        if (read_as != DType::f32) copy_type_ = read_as;
        if (weight.transposed && read_as == DType::f32 && ops::gains_by_transposed_weights(runtime))
          items_.back().transposed = transposed_.add(ops::transposed_weights_spec(spec));
        specs.push_back(&weight);
      }
    }
  penalty_scratch_ = scratch_.add(ops::penalty_scratch());
  squares_ = scratch_.add(TensorSpec(DType::f32, {1}));
  scratch_.build(runtime.device());
  values_.build(runtime.device());
  if (copy_type_) {
    copies_.add_alike(values_, *copy_type_);
    copies_.build(runtime.device());
  }
  transposed_.build(runtime.device());
  if (use == ReplicaUse::train) gradients_.build(runtime.device());
  for (int s = 0; use == ReplicaUse::train && s < optimizer_.states(); ++s) {
    Arena& state = states_.emplace_back();
    for (const WeightSpec* weight : specs) state.add(with_zero_rows(weight->shape));
    state.build(runtime.device());
    if (const float start = optimizer_.start(s); start != 0) {
      Context ctx(runtime, runtime.compute_stream());
      ops::fill(ctx, start, state.flat());
    }
  }
  find_trained();
  for (size_t i = 0; i < items_.size(); ++i) {
    const Tensor value = values_.get(items_[i].value);
    from_host(runtime.compute_stream(), value,
              draw(specs[i]->start, value.elements(), runtime.options().seed, items_[i].name));
  }
  Context ctx(runtime, runtime.compute_stream());
  refresh_copies(ctx);
}

void Weights::find_trained() {
  trained_.clear();
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].frozen) continue;
    const Tensor all = values_.flat();
    const auto begin = [&](size_t item) {
      return item < items_.size() ? values_.get(items_[item].value).data<float>() - all.data<float>() : all.elements();
    };
    if (trained_.empty() || trained_.back().second != begin(i)) trained_.emplace_back(begin(i), begin(i));
    trained_.back().second = begin(i + 1);
  }
}

void Weights::freeze(const std::string& layer, bool frozen) {
  for (Item& item : items_)
    if (item.name.substr(0, item.name.rfind('/')) == layer) item.frozen = frozen;
  find_trained();
}

std::vector<Tensor> Weights::of_node(size_t node) const {
  std::vector<Tensor> tensors;
  for (const Item& item : items_)
    if (item.node == node) tensors.push_back((item.copied ? copies_ : values_).get(item.value));
  return tensors;
}

std::vector<std::optional<Tensor>> Weights::transposed_of_node(size_t node) const {
  std::vector<std::optional<Tensor>> tensors;
  for (const Item& item : items_)
    if (item.node == node)
      tensors.push_back(item.transposed ? std::optional(transposed_.get(*item.transposed)) : std::nullopt);
  return tensors;
}

std::vector<Tensor> Weights::gradients_of_node(size_t node) const {
  std::vector<Tensor> tensors;
  for (const Item& item : items_)
    if (item.node == node) tensors.push_back(gradients_.get(item.gradient));
  return tensors;
}

void Weights::add_penalty(Context& ctx, const LossLayer::Regularizer& regularizer, int64_t samples, int ranks,
                          Tensor total) const {
  if (regularizer.kind == LossLayer::Regularizer::Kind::none) return;
  for (const Item& item : items_) {
    if (!item.penalised) continue;
    ops::add_penalty(ctx, penalty_of(regularizer.kind), penalty_factor(regularizer, samples, ranks),
                     values_.get(item.value), scratch_.get(penalty_scratch_), total);
  }
}

void Weights::add_penalty_gradients(Context& ctx, size_t node, const LossLayer::Regularizer& regularizer,
                                    int64_t samples, int ranks) const {
  if (regularizer.kind == LossLayer::Regularizer::Kind::none) return;
  for (const Item& item : items_) {
    if (!item.penalised || item.node != node) continue;
    ops::add_penalty_gradient(ctx, penalty_of(regularizer.kind), penalty_factor(regularizer, samples, ranks),
                              values_.get(item.value), gradients_.get(item.gradient));
  }
}

std::vector<GradientRange> Weights::gradient_ranges() const {
  if (use_ != ReplicaUse::train) return {};
  const Tensor all = gradients_.flat();
  const auto begin = [&](const Item& item) { return gradients_.get(item.gradient).data<float>() - all.data<float>(); };
  std::vector<GradientRange> ranges;
  for (const Item& item : items_) {
    if (!ranges.empty()) ranges.back().end = begin(item);
    ranges.push_back({item.node, begin(item), all.elements()});
  }
  return ranges;
}

std::vector<Tensor> Weights::gradients_without(std::span<const Tensor> some) const {
  const Tensor all = gradients_.flat();
  std::vector<Tensor> parts;
  int64_t begin = 0;
  const auto add_up_to = [&](int64_t end) {
    if (end > begin) parts.push_back(part_of(all, begin, end));
  };
  for (const GradientRange& range : gradient_ranges()) {
    const float* const first = all.data<float>() + range.begin;
    if (std::ranges::none_of(some, [&](const Tensor& one) { return one.data<float>() == first; })) continue;
    add_up_to(range.begin);
    begin = range.end;
  }
  add_up_to(all.elements());
  return parts;
}

void Weights::clip_gradients(Context& ctx) const {
  if (most_norm_ == 0) return;
  const Tensor all = gradients_.flat(), squares = scratch_.get(squares_);
  const auto part = [&](const std::pair<int64_t, int64_t>& range) { return part_of(all, range.first, range.second); };
  ops::fill(ctx, 0, squares);
  for (const auto& range : trained_)
    ops::add_penalty(ctx, ops::Penalty::l2, 1, part(range), scratch_.get(penalty_scratch_), squares);
  for (const auto& range : trained_) ops::clip_to_norm(ctx, static_cast<float>(most_norm_), squares, part(range));
}

void Weights::update(Context& ctx) const {
  clip_gradients(ctx);
  for (const auto& [first, end] : trained_) {
    const auto part = [first = first, end = end](const Tensor& all) { return part_of(all, first, end); };
    std::vector<Tensor> states;
    for (const Arena& state : states_) states.push_back(part(state.flat()));
    ops::update_dense(ctx, optimizer_, part(gradients_.flat()), part(values_.flat()), states,
                      copy_type_ ? std::optional(part(copies_.flat(*copy_type_))) : std::nullopt);
  }
}

Work Weights::work_of_update() const {
  // An update reads gradients, reads and writes weights and states, and writes copies.
  size_t bytes = gradients_.bytes() + 2 * values_.bytes() + copies_.bytes();
  for (const Arena& state : states_) bytes += 2 * state.bytes();
  return {.bytes = static_cast<double>(bytes)};
}

void Weights::refresh_copies(Context& ctx) const {
  if (copy_type_) ops::copy(ctx, values_.flat(), copies_.flat(*copy_type_));
}

std::vector<NamedTensor> Weights::values() const {
  std::vector<NamedTensor> named;
  for (const Item& item : items_) named.push_back({item.name, values_.get(item.value)});
  return named;
}

template <class State>
void Weights::visit_state(State& state) const {
  for (const Item& item : items_) {
    state.tensor(item.name, values_.get(item.value));
    for (size_t s = 0; s < states_.size(); ++s) state.tensor(cat(item.name, "/state", s), states_[s].get(item.value));
  }
}

void Weights::save_state(StateWriter to) const { visit_state(to); }

void Weights::load_state(const StateReader& from, Context& ctx) {
  visit_state(from);
  refresh_copies(ctx);
}

}  // namespace hctr
