#include "model/weights.h"

#include <algorithm>
#include <cstring>

#include "base/files.h"
#include "base/half.h"
#include "base/not_finite.h"
#include "config/json.h"
#include "config/problems.h"
#include "config/values.h"
#include "device/copy.h"
#include "hctr/formats.h"
#include "layers/initializer.h"
#include "model/dense_layout.h"
#include "ops/clip.h"
#include "ops/copy.h"
#include "ops/fill.h"
#include "ops/penalty.h"
#include "ops/transposed_weights.h"
#include "optim/catalog.h"

namespace hctr {
namespace {

ops::Penalty penalty_of(LossLayer::Regularizer::Kind kind) {
  return kind == LossLayer::Regularizer::Kind::l1 ? ops::Penalty::l1 : ops::Penalty::l2;
}

/// lambda / (2 batch) sum w^2 for L2, lambda / batch sum |w| for L1.
float penalty_factor(const LossLayer::Regularizer& regularizer, int64_t samples, int ranks) {
  const double half = regularizer.kind == LossLayer::Regularizer::Kind::l2 ? 0.5 : 1.0;
  return static_cast<float>(half * regularizer.lambda / static_cast<double>(samples) / ranks);
}

/// Elements [first, end) of a flat tensor.
Tensor part_of(const Tensor& all, int64_t first, int64_t end) {
  const TensorSpec spec(all.dtype(), {end - first});
  return Tensor(all.bytes() + static_cast<size_t>(first) * size_of(all.dtype()), spec, all.device());
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "fc1" of "fc1/weights".
std::string layer_of(const std::string& weight) { return weight.substr(0, weight.rfind('/')); }

/// Matrices get rows of zeros up to a multiple of eight, as rows of activations have columns of zeros: a product over
/// 429 columns runs as one over 432. The zeros stay: their gradients are sums of products with zeros, and the
/// optimizers leave a zero without gradient as it is.
TensorSpec with_zero_rows(const Shape& shape) {
  TensorSpec spec(DType::f32, shape);
  if (shape.rank() == 2 && shape[0] >= 8) spec.zero_rows = (shape[0] + 7) / 8 * 8 - shape[0];
  return spec;
}

}  // namespace

std::filesystem::path Weights::layout_path(std::filesystem::path dense_model_file) {
  dense_model_file += ".layout.json";
  return dense_model_file;
}

Weights::Weights(const Config& config, const Graph& graph, Runtime& runtime)
    : most_norm_(config.solver.clip_gradient_norm.value_or(0)),
      optimizer_(config.optimizer.rule(config.optimizer.hyper.learning_rate)) {
  // The running order may differ from the order of the config; the file keeps the latter.
  std::vector<const WeightSpec*> specs;
  for (const LayerEntry& entry : config.layers)
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].entry != &entry) continue;
      for (const WeightSpec& weight : graph.nodes[n].spec.weights) {
        const TensorSpec spec = with_zero_rows(weight.shape);
        const DType read_as = graph.nodes[n].spec.outputs[0].dtype;
        items_.push_back({entry.tops[0] + "/" + weight.name, n, values_.add(spec), gradients_.add(spec),
                          weight.penalised, read_as != DType::f32, contains(config.solver.frozen, entry.tops[0])});
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
  gradients_.build(runtime.device());
  for (int s = 0; s < optimizer_.states(); ++s) {
    Arena& state = states_.emplace_back();
    for (const WeightSpec* weight : specs) state.add(with_zero_rows(weight->shape));
    state.build(runtime.device());
    if (const float start = optimizer_.start(s); start != 0) {
      Context ctx(runtime, runtime.compute_stream());
      ops::fill(ctx, start, state.flat());
    }
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].frozen) continue;
    const Tensor all = values_.flat();
    const auto begin = [&](size_t item) {
      return item < items_.size() ? values_.get(items_[item].value).data<float>() - all.data<float>() : all.elements();
    };
    if (trained_.empty() || trained_.back().second != begin(i)) trained_.emplace_back(begin(i), begin(i));
    trained_.back().second = begin(i + 1);
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    const Tensor value = values_.get(items_[i].value);
    from_host(runtime.compute_stream(), value,
              draw(specs[i]->start, value.elements(), runtime.options().seed, items_[i].name));
  }
  Context ctx(runtime, runtime.compute_stream());
  refresh_copies(ctx);
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
  // Reads gradients, reads and writes weights and states, writes copies.
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

void Weights::save(FileSet& set, const std::filesystem::path& path, StreamRef stream) const {
  AtomicFile& file = set.add(path);
  Json layout(Json::Array{});
  for (const Item& item : items_) {
    const Tensor value = values_.get(item.value);
    const std::vector<float> host = to_host<float>(stream, value);
    if (const int64_t at = find_not_finite(host); at >= 0)
      throw Error(Kind::data, cat("weight ", at, " of '", item.name, "' is ", host[static_cast<size_t>(at)],
                                  ": training diverged, and this model is not saved"));
    file.write(host.data(), host.size() * sizeof(float));
    Json shape(Json::Array{});
    for (int d = 0; d < value.rank(); ++d) shape.add(value.dim(d));
    layout.add(Json(Json::Object{{"name", item.name}, {"shape", shape}}));
  }
  file.finish();
  set.add(layout_path(path)).write(Json(Json::Object{{"schema", 1}, {"weights", layout}}).text(1) + "\n");
}

void Weights::expect_layout(const std::filesystem::path& path) const {
  const std::filesystem::path layout = layout_path(path);
  if (!std::filesystem::exists(layout)) return;
  const Json file = Json::read_file(layout);
  const Json* weights = file.find("weights");
  if (!weights || !weights->array()) return;
  const auto saved = [&](size_t i) {
    if (i >= weights->array()->size()) return std::string("nothing");
    const Json *name = (*weights->array())[i].find("name"), *shape = (*weights->array())[i].find("shape");
    return cat("'", name && name->string() ? *name->string() : "?", "' ", shape ? shape->text() : "");
  };
  const auto here = [&](size_t i) {
    return i < items_.size() ? cat("'", items_[i].name, "' ", to_string(values_.get(items_[i].value).shape()))
                             : std::string("nothing");
  };
  for (size_t i = 0; i < std::max(items_.size(), weights->array()->size()); ++i)
    if (saved(i) != here(i))
      throw Error(Kind::data,
                  cat("dense model file '", path.string(), "' belongs to another model: its weight ", i, " is ",
                      saved(i), ", and the config has ", here(i), " there (as '", layout.string(), "' says)"));
}

namespace {

/// The file, whose size was looked at.
std::string read_dense(const std::filesystem::path& path, int64_t size) {
  std::string bytes = read_text(path, "dense model file", size);
  if (static_cast<int64_t>(bytes.size()) != size)
    throw Error(Kind::io, cat("cannot read dense model file '", path.string(), "': it became shorter meanwhile"));
  return bytes;
}

}  // namespace

void Weights::load(const std::filesystem::path& path, Context& ctx, const std::vector<std::string>& layers) {
  const int64_t size = size_of_file(path, "dense model file");  // which is right before so much is read
  const bool described = std::filesystem::exists(layout_path(path));
  if (!layers.empty() && described) {
    load_chosen(path, size, layers, ctx);
    return refresh_copies(ctx);
  }
  expect_layout(path);
  size_t expected = 0;
  for (const Item& item : items_) expected += static_cast<size_t>(values_.get(item.value).elements()) * sizeof(float);
  if (size != static_cast<int64_t>(expected))
    throw Error(Kind::data,
                cat("dense model file '", path.string(), "' has ", size, " bytes, and this config's dense layers have ",
                    expected / sizeof(float), " weights, ", expected, " bytes: it belongs to another model",
                    layers.empty() ? ""
                                   : cat(", and there is no '", layout_path(path).string(),
                                         "' that says where the layers are in it")));
  const std::string bytes = read_dense(path, size);
  size_t at = 0;
  for (const Item& item : items_) {
    if (layers.empty() || contains(layers, layer_of(item.name))) set_value(item, path, bytes, at, ctx);
    at += static_cast<size_t>(values_.get(item.value).elements()) * sizeof(float);
  }
  refresh_copies(ctx);
}

/// Loads the weights of some layers from the file of another network.
void Weights::load_chosen(const std::filesystem::path& path, int64_t size, const std::vector<std::string>& layers,
                          Context& ctx) {
  const std::vector<SavedWeight> parts = weights_in_layout(layout_path(path), static_cast<size_t>(size));
  const std::string bytes = read_dense(path, size);
  for (const Item& item : items_) {
    if (!contains(layers, layer_of(item.name))) continue;
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const SavedWeight& part) { return part.name == item.name; });
    if (found == parts.end()) {
      std::vector<std::string> names;
      for (const SavedWeight& part : parts)
        if (!contains(names, layer_of(part.name))) names.push_back(layer_of(part.name));
      throw Error(Kind::data, cat("dense model file '", path.string(), "' has no '", item.name, "', as '",
                                  layout_path(path).string(), "' says; its layers are ", one_of(names)));
    }
    const Tensor value = values_.get(item.value);
    std::vector<int64_t> shape;
    for (int d = 0; d < value.rank(); ++d) shape.push_back(value.dim(d));
    if (found->shape != shape)
      throw Error(Kind::data, cat("dense model file '", path.string(), "' has '", item.name, "' of shape ",
                                  to_json(found->shape).text(), ", and this config has ", to_json(shape).text()));
    set_value(item, path, bytes, found->at, ctx);
  }
}

/// Takes a weight from byte `at` of a file.
void Weights::set_value(const Item& item, const std::filesystem::path& path, const std::string& bytes, size_t at,
                        Context& ctx) const {
  const Tensor value = values_.get(item.value);
  std::vector<float> host(static_cast<size_t>(value.elements()));
  std::memcpy(host.data(), bytes.data() + at, host.size() * sizeof(float));
  if (const int64_t bad = find_not_finite(host); bad >= 0)
    throw Error(Kind::data,
                cat("dense model file '", path.string(), "': weight ", bad, " of '", item.name, "', at byte ",
                    at + static_cast<size_t>(bad) * sizeof(float), ", is ", host[static_cast<size_t>(bad)]));
  from_host(ctx.stream(), value, host);
}

void Weights::save_opt_states(FileSet& set, const std::filesystem::path& path, StreamRef stream) const {
  AtomicFile& file = set.add(path);
  for (const Arena& state : states_)
    for (const Item& item : items_) {
      const std::vector<float> host = to_host<float>(stream, state.get(item.value));
      if (const int64_t at = find_not_finite(host); at >= 0)
        throw Error(Kind::data, cat("the optimizer's state ", at, " of '", item.name, "' is ",
                                    host[static_cast<size_t>(at)], ": training diverged, and this model is not saved"));
      file.write(host.data(), host.size() * sizeof(float));
    }
  file.finish();
}

void Weights::load_opt_states(const std::filesystem::path& path, StreamRef stream) {
  const int64_t size = size_of_file(path, "file of optimizer states");
  size_t weights = 0;
  for (const Item& item : items_) weights += static_cast<size_t>(values_.get(item.value).elements());
  const size_t numbers = weights * states_.size();
  const bool of_two_bytes = size == static_cast<int64_t>(numbers) * 2 && numbers > 0;
  if (size != static_cast<int64_t>(numbers) * 4 && !of_two_bytes)
    throw Error(Kind::data,
                cat("file of optimizer states '", path.string(), "' has ", size, " bytes; ", states_.size(),
                    states_.size() == 1 ? " state" : " states", " of ", optimizer_type(optimizer_.kind).name, " for ",
                    weights, " dense weights are ", numbers * 4, ": it is of another model or optimizer"));
  const std::string bytes = read_text(path, "file of optimizer states", size);
  if (static_cast<int64_t>(bytes.size()) != size)
    throw Error(Kind::io, cat("cannot read file of optimizer states '", path.string(), "': it became shorter"));
  const char* at = bytes.data();
  for (const Arena& state : states_)
    for (const Item& item : items_) {
      const Tensor to = state.get(item.value);
      std::vector<float> host(static_cast<size_t>(to.elements()));
      if (of_two_bytes) {
        for (float& value : host) {
          Half half;
          std::memcpy(&half, at, sizeof half);
          at += sizeof half;
          value = static_cast<float>(half);
        }
      } else {
        std::memcpy(host.data(), at, host.size() * sizeof(float));
        at += host.size() * sizeof(float);
      }
      if (const int64_t bad = find_not_finite(host); bad >= 0)
        throw Error(Kind::data, cat("file of optimizer states '", path.string(), "': the state of weight ", bad,
                                    " of '", item.name, "' is ", host[static_cast<size_t>(bad)]));
      from_host(stream, to, host);
    }
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
