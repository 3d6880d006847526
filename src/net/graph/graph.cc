#include "net/graph/graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "core/base/expect.h"
#include "core/base/printable.h"

namespace hctr {
namespace {

/// The producer of a named tensor: data, an embedding or a layer.
struct Maker {
  std::string pointer;
  std::optional<size_t> layer;
};

class Wiring {
 public:
  Wiring(const Config& config, int64_t samples, Problems& problems)
      : config_(config),
        samples_(samples),
        problems_(problems),
        lost_(config.lost_tops.begin(), config.lost_tops.end()) {}

  Graph run() {
    find_makers();
    check_bottoms();
    const std::vector<size_t> order = running_order();
    if (problems_.any_error()) return {};  // after an error in names or values, shapes are meaningless
    add_sources();
    if (problems_.any_error()) return {};
    for (const size_t layer : order) {
      add_node(config_.layers[layer]);
      if (problems_.any_error()) return {};  // after a wrong shape, shapes that depend on it are meaningless
    }
    finish();
    return std::move(graph_);
  }

 private:
  void make(const std::string& name, const std::string& pointer, std::optional<size_t> layer) {
    const auto [found, is_new] = makers_.try_emplace(name, Maker{pointer, layer});
    if (!is_new)
      problems_.error(pointer, cat("a tensor named \"", name, "\" already exists, from ", found->second.pointer));
  }

  void make_all(const std::vector<std::string>& tops, const std::string& pointer, std::optional<size_t> layer) {
    for (size_t t = 0; t < tops.size(); ++t)
      make(tops[t], cat(pointer, "/top", tops.size() > 1 ? cat("/", t) : ""), layer);
  }

  void find_makers() {
    const DataSection& data = config_.data;
    make(data.label.top, "/layers/0/label/top", {});
    if (data.dense.dense_dim > 0) make(data.dense.top, "/layers/0/dense/top", {});
    for (const EmbeddingEntry& embedding : config_.embeddings)
      make_all(embedding.section.tops.names, embedding.pointer, {});
    for (size_t i = 0; i < config_.layers.size(); ++i) make_all(config_.layers[i].tops, config_.layers[i].pointer, i);
  }

  void check_bottoms() {
    std::vector<std::string> sparse_names, names;
    for (const SparseInput& input : config_.data.sparse) sparse_names.push_back(input.top);
    for (const auto& [name, maker] : makers_) names.push_back(name);
    for (const EmbeddingEntry& embedding : config_.embeddings) {
      const auto found = std::find(sparse_names.begin(), sparse_names.end(), embedding.section.bottom);
      if (found == sparse_names.end())
        problems_.error(embedding.pointer + "/bottom", cat("no sparse input is called \"", embedding.section.bottom,
                                                           "\"", hint(embedding.section.bottom, sparse_names)));
      else
        graph_.embedding_inputs.push_back(static_cast<size_t>(found - sparse_names.begin()));
    }
    for (const LayerEntry& entry : config_.layers)
      for (size_t b = 0; b < entry.bottoms.size(); ++b) {
        if (makers_.contains(entry.bottoms[b]) || is_lost(entry.bottoms[b])) continue;
        std::string message = cat("no layer produces \"", entry.bottoms[b], "\"", hint(entry.bottoms[b], names));
        if (entry.bottoms[b] == config_.data.dense.top)
          message = cat("\"", entry.bottoms[b], "\" is empty: dense_dim is 0");
        if (std::find(sparse_names.begin(), sparse_names.end(), entry.bottoms[b]) != sparse_names.end())
          message = cat("\"", entry.bottoms[b], "\" is a sparse input: only an embedding can read it");
        problems_.error(cat(entry.pointer, "/bottom", entry.bottoms.size() > 1 ? cat("/", b) : ""), message);
      }
  }

  bool is_lost(const std::string& name) const { return lost_.contains(name); }

  /// Suggests the nearest name, or lists all names if there are few. The search takes time proportional to the number
  /// of names, so problems after the first kMostHints get no hint.
  std::string hint(const std::string& word, const std::vector<std::string>& names) const {
    constexpr size_t kMostHints = 100, kMostNames = 100;
    if (problems_.errors().size() >= kMostHints) return "";
    const std::string near = did_you_mean(word, names);
    return near.empty() && names.size() <= kMostNames ? "; there is " + one_of(names) : near;
  }

  /// Sorts layers topologically. Independent layers keep the order of the config file.
  std::vector<size_t> running_order() {
    std::vector<size_t> order;
    std::vector<int> state(config_.layers.size(), 0);  // 0: not visited, 1: on the stack, 2: placed
    struct Placing {
      size_t layer, bottom = 0;  // bottom: the next input to visit
    };
    std::vector<Placing> stack;  // no recursion, because a chain of layers may be as long as the config
    for (size_t first = 0; first < config_.layers.size(); ++first) {
      if (state[first] == 0) stack.push_back({first});
      while (!stack.empty()) {
        Placing& at = stack.back();
        const LayerEntry& layer = config_.layers[at.layer];
        state[at.layer] = 1;
        if (at.bottom == layer.bottoms.size()) {
          state[at.layer] = 2;
          order.push_back(at.layer);
          stack.pop_back();
          continue;
        }
        const std::string& bottom = layer.bottoms[at.bottom++];
        const auto maker = makers_.find(bottom);
        if (maker == makers_.end() || !maker->second.layer || state[*maker->second.layer] == 2) continue;
        if (state[*maker->second.layer] == 0) {
          stack.push_back({*maker->second.layer});
          continue;
        }
        problems_.error(layer.pointer + "/bottom", cat("\"", bottom,
                                                       "\" depends on this layer's own output, which "
                                                       "is a cycle"));
        at.bottom = layer.bottoms.size();
      }
    }
    return order;
  }

  TensorId add_edge(const std::string& name, const TensorSpec& spec, std::optional<size_t> producer,
                    bool needs_gradient) {
    graph_.edges.push_back({name, spec, producer, {}, needs_gradient});
    ids_[name] = graph_.edges.size() - 1;
    return graph_.edges.size() - 1;
  }

  /// Limits element counts to far below 2^63. Counts that layers derive from these counts then cannot overflow.
  void check_size(const Shape& shape, const std::string& pointer) {
    constexpr double kMost = 1LL << 36;
    double elements = 1;
    for (int d = 0; d < shape.rank(); ++d) elements *= static_cast<double>(shape[d]);
    if (elements > kMost)
      problems_.error(pointer, cat("needs a tensor of shape ", to_string(shape), ", ", elements, " elements; at most ",
                                   static_cast<int64_t>(kMost),
                                   " elements are possible: reduce the batch or the "
                                   "layer's sizes"));
  }

  void add_sources() {
    const DataSection& data = config_.data;
    check_size({samples_, data.label.label_dim}, "/layers/0/label");
    check_size({samples_, data.dense.dense_dim}, "/layers/0/dense");
    for (size_t i = 0; i < data.sparse.size(); ++i)
      check_size({samples_, data.sparse[i].kept_keys()}, cat("/layers/0/sparse/", i));
    for (size_t i = 0; i < config_.embeddings.size(); ++i)
      check_size({samples_, data.sparse[graph_.embedding_inputs[i]].slot_num, config_.embeddings[i].section.dim},
                 config_.embeddings[i].pointer);
    if (problems_.any_error()) return;
    const DType activations = config_.solver.mixed_precision.activations;
    graph_.label = add_edge(data.label.top, TensorSpec(DType::f32, {samples_, data.label.label_dim}), {}, false);
    if (data.dense.dense_dim > 0)
      graph_.dense = add_edge(data.dense.top, TensorSpec(activations, {samples_, data.dense.dense_dim}), {}, false);
    for (size_t i = 0; i < config_.embeddings.size(); ++i)
      add_embedding(config_.embeddings[i], data.sparse[graph_.embedding_inputs[i]]);
  }

  void add_embedding(const EmbeddingEntry& entry, const SparseInput& input) {
    const EmbeddingSection& section = entry.section;
    const DType activations = config_.solver.mixed_precision.activations;
    check_slots(section, input.slot_num, entry.pointer, problems_);
    const int64_t places = section.pooled() ? int64_t{input.slot_num} : input.kept_places();
    if (!section.pooled() && places > std::numeric_limits<int32_t>::max() / std::max<int64_t>(samples_, 1))
      problems_.error(entry.pointer + "/sparse_embedding_hparam/combiner",
                      cat("\"none\" needs a column for every key that the limits of \"", input.top, "\" allow, and ",
                          samples_, " samples of ", places, " columns exceed 2^31; lower the limits or the batch"));
    graph_.embeddings.push_back(
        add_edge(section.top(), TensorSpec(activations, {samples_, places, section.dim}), {}, true));
    graph_.lengths.emplace_back();
    if (!section.has_lengths()) return;
    const int64_t exact = activations == DType::bf16 ? 256 : activations == DType::f16 ? 2048 : int64_t{1} << 24;
    if (input.longest_kept() > exact)
      problems_.error(entry.pointer + "/top/1", cat("slots of \"", input.top, "\" may have ", input.longest_kept(),
                                                    " keys, and ", name_of(activations),
                                                    " represents counts exactly "
                                                    "only up to ",
                                                    exact, "; set \"keep_last\" to shorten slots"));
    graph_.lengths.back() =
        add_edge(section.tops.names[1], TensorSpec(activations, {samples_, input.slot_num}), {}, false);
  }

  void add_node(const LayerEntry& entry) {
    const size_t index = graph_.nodes.size();
    Node node{&entry, {}, {}, {}};
    Specs inputs;
    bool needs_gradient = false;
    for (const std::string& bottom : entry.bottoms) {
      const TensorId id = ids_.at(bottom);
      node.in.push_back(id);
      inputs.push_back(graph_.edges[id].spec);
      needs_gradient = needs_gradient || graph_.edges[id].needs_gradient;
      graph_.edges[id].readers.push_back(index);
    }
    for (size_t b = 1; b < inputs.size() && !node.is_loss(); ++b)
      if (inputs[b].dtype != inputs[0].dtype)
        return problems_.error(
            cat(entry.pointer, "/bottom/", b),
            cat("\"", entry.bottoms[b], "\" is ", name_of(inputs[b].dtype), " and \"", entry.bottoms[0], "\" is ",
                name_of(inputs[0].dtype),
                ": only a loss may read tensors of different dtypes. With mixed_precision, labels stay f32"));
    try {
      node.spec = entry.layer->spec(inputs);
    } catch (const LayerError& error) {
      std::string place = error.field();
      if (place == "bottom/0" && entry.bottoms.size() == 1) place = "bottom";
      return problems_.error(cat(entry.pointer, "/", place), error.what());
    }
    if (!node.is_loss() && node.spec.outputs.size() != entry.tops.size())
      return problems_.error(entry.pointer + "/top",
                             cat(entry.type->name(), " has ", node.spec.outputs.size(),
                                 node.spec.outputs.size() == 1 ? " output" : " outputs", " with these fields, but ",
                                 entry.tops.size(), entry.tops.size() == 1 ? " top is" : " tops are", " named"));
    for (const auto* list : {&node.spec.outputs, &node.spec.scratch})
      for (const TensorSpec& spec : *list) check_size(spec.shape, entry.pointer);
    for (const WeightSpec& weight : node.spec.weights) check_size(weight.shape, entry.pointer);
    if (problems_.any_error()) return;
    for (size_t t = 0; t < node.spec.outputs.size(); ++t) {
      const std::string name = t < entry.tops.size() ? entry.tops[t] : entry.tops[0] + "/prediction";
      node.out.push_back(add_edge(name, node.spec.outputs[t], index, needs_gradient || !node.spec.weights.empty()));
    }
    for (const WeightSpec& weight : node.spec.weights) graph_.parameters += weight.shape.elements();
    graph_.nodes.push_back(std::move(node));
  }

  void finish() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (graph_.nodes[n].is_loss()) graph_.losses.push_back(n);
    std::sort(graph_.losses.begin(), graph_.losses.end(),  // in the order of the layers in the config
              [&](size_t a, size_t b) { return graph_.nodes[a].entry < graph_.nodes[b].entry; });
    if (graph_.losses.empty())
      return problems_.error("/layers",
                             "the config has no loss layer; add a BinaryCrossEntropyLoss that reads the last layer "
                             "and the label");
    for (const size_t n : graph_.losses) {
      const Node& loss = graph_.nodes[n];
      if (!graph_.edges[loss.in[0]].needs_gradient)
        problems_.error(loss.entry->pointer + "/bottom/0", "no trainable layer feeds this loss");
    }
    for (TensorId id = 0; id < graph_.edges.size(); ++id) {
      if (!graph_.unread(id)) continue;
      const Edge& edge = graph_.edges[id];
      problems_.warn(
          edge.producer ? graph_.nodes[*edge.producer].entry->pointer + "/top" : makers_.at(edge.name).pointer,
          cat("no layer reads \"", edge.name, "\": its gradient is zero"));
    }
  }

  const Config& config_;
  const int64_t samples_;
  Problems& problems_;
  const std::set<std::string> lost_;
  Graph graph_;
  std::map<std::string, Maker> makers_;
  std::map<std::string, TensorId> ids_;
};

}  // namespace

bool Graph::unread(TensorId id) const {
  const Edge& edge = edges[id];
  return edge.needs_gradient && edge.readers.empty() && !(edge.producer && nodes[*edge.producer].is_loss());
}

Graph wire(const Config& config, int64_t samples, Problems& problems) {
  return Wiring(config, samples, problems).run();
}

std::string layer_table(const Config& config, const Graph& graph) {
  std::vector<std::vector<std::string>> rows = {{"output", "layer", "shape", "parameters"}};
  const auto shape_of = [&](TensorId id) { return to_string(graph.edges[id].spec.shape); };
  rows.push_back({graph.edges[graph.label].name, "Data (label)", shape_of(graph.label), ""});
  if (graph.dense) rows.push_back({graph.edges[*graph.dense].name, "Data (dense)", shape_of(*graph.dense), ""});
  for (size_t i = 0; i < graph.embeddings.size(); ++i) {
    const EmbeddingSection& section = config.embeddings[i].section;
    rows.push_back({section.top(), section.type, shape_of(graph.embeddings[i]), cat(section.dim, " a key")});
    if (graph.lengths[i]) rows.push_back({section.tops.names[1], section.type, shape_of(*graph.lengths[i]), ""});
  }
  for (const Node& node : graph.nodes) {
    int64_t parameters = 0;
    for (const WeightSpec& weight : node.spec.weights) parameters += weight.shape.elements();
    for (size_t t = 0; t < node.entry->tops.size(); ++t)
      rows.push_back({node.entry->tops[t], node.entry->type->name(), shape_of(node.out[t]),
                      t == 0 && parameters ? cat(parameters) : ""});
  }
  rows.push_back({"", "", "dense parameters in all:", cat(graph.parameters)});
  std::vector<size_t> widths(4, 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < 4; ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const auto& row : rows) {
    text += "  ";
    for (size_t c = 0; c < 3; ++c) text += filled_up(row[c], widths[c] + 2);
    text += row[3] + "\n";
  }
  return text;
}

}  // namespace hctr
