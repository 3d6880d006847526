#include "export/onnx_model.h"

#include <algorithm>
#include <set>

#include "core/base/expect.h"
#include "export/onnx_table.h"
#include "net/graph/graph.h"

namespace hctr {
namespace {

class Exporter {
 public:
  Exporter(const Config& config, const ModelArrays& arrays) : config_(config), arrays_(arrays) {
    Problems problems;
    graph_ = wire(config, config.solver.eval_batch(), problems);
    HCTR_EXPECT(!problems.any_error(), "a config with ", problems.errors().size(), " problems");
    for (const size_t loss : graph_.losses) scores_.push_back(score_name(loss));
    find_needed();
  }

  OnnxModel run() {
    add_inputs();
    for (size_t e = 0; e < graph_.embeddings.size(); ++e) add_embedding(e);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (needed_nodes_.contains(n)) add_node(n);
    for (size_t i = 0; i < graph_.losses.size(); ++i) {
      const TensorSpec& prediction = graph_.nodes[graph_.losses[i]].spec.outputs[1];
      model_.outputs.push_back({scores_[i], DType::f32, {"N", std::to_string(prediction.shape[1])}});
    }
    return std::move(model_);
  }

 private:
  std::string score_name(size_t loss) const {
    return graph_.losses.size() == 1 ? "score" : "score_" + graph_.nodes[loss].entry->tops[0];
  }

  /// The name of a tensor in the graph. It differs from the config's name if a model output has that name.
  std::string name_of(TensorId tensor) const {
    const std::string& name = graph_.edges[tensor].name;
    return std::find(scores_.begin(), scores_.end(), name) == scores_.end() ? name : name + "/value";
  }

  /// Finds the nodes and tensors that the scores depend on.
  void find_needed() {
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      const bool wanted = node.is_loss() || std::any_of(node.out.begin(), node.out.end(),
                                                        [&](TensorId out) { return needed_.contains(out); });
      if (!wanted) continue;
      needed_nodes_.insert(n);
      // a loss needs only its first input, the logits
      for (size_t i = 0; i < (node.is_loss() ? 1 : node.in.size()); ++i) {
        if (node.in[i] == graph_.label)
          fail(node, cat("reads the label '", graph_.edges[graph_.label].name,
                         "', which does not exist in "
                         "inference"));
        needed_.insert(node.in[i]);
      }
    }
  }

  [[noreturn]] static void fail(const Node& node, const std::string& why) {
    throw Error(Kind::config, cat("layer '", node.entry->tops[0], "' (", node.entry->type->name(), ", ",
                                  node.entry->pointer, ") cannot be exported to ONNX: ", why));
  }

  void add_inputs() {
    const DataSection& data = config_.data;
    if (data.dense.dense_dim > 0)
      model_.inputs.push_back({data.dense.top, DType::f32, {"N", std::to_string(data.dense.dense_dim)}});
    for (const SparseInput& input : data.sparse) {
      OnnxValue value{input.top, DType::i64, {"N", std::to_string(input.slot_num)}};
      const OnnxKeys keys = onnx_keys(config_, input);
      if (keys.most > 1) value.dims.push_back(keys.fixed ? std::to_string(keys.most) : "keys_of_" + input.top);
      model_.inputs.push_back(std::move(value));
    }
  }

  void add_embedding(size_t e) {
    const auto wanted = [&](const std::optional<TensorId>& tensor) {
      return tensor && needed_.contains(*tensor) ? name_of(*tensor) : std::string();
    };
    const std::string lengths = wanted(graph_.lengths[e]);
    if (wanted(graph_.embeddings[e]).empty() && lengths.empty()) return;
    const SparseInput& input = config_.data.sparse[graph_.embedding_inputs[e]];
    add_lookup(model_,
               {arrays_.tables[e], config_.embeddings[e].section, input, onnx_keys(config_, input), no_key_of(arrays_)},
               name_of(graph_.embeddings[e]), lengths);
  }

  void add_node(size_t n) {
    const Node& node = graph_.nodes[n];
    const std::string& layer = node.entry->tops[0];
    OnnxIo io;
    const auto value = [&](TensorId tensor) { return OnnxIo::Value{name_of(tensor), graph_.edges[tensor].spec.shape}; };
    if (node.is_loss()) {
      const auto at = std::find(graph_.losses.begin(), graph_.losses.end(), n) - graph_.losses.begin();
      io.in = {value(node.in[0])};
      io.out = {{scores_[static_cast<size_t>(at)], node.spec.outputs[1].shape}};
    } else {
      for (const TensorId in : node.in) io.in.push_back(value(in));
      for (const TensorId out : node.out) io.out.push_back(value(out));
    }
    const auto add_array = [&](const std::string& name) {
      model_.initializers.push_back(arrays_.find(layer + "/" + name));
      return layer + "/" + name;
    };
    for (const WeightSpec& weight : node.spec.weights) io.weights.push_back(add_array(weight.name));
    for (const StateSpec& state : node.spec.state) io.state.push_back(add_array(state.name));
    model_.graph.enter(layer);
    try {
      node.entry->layer->to_onnx(model_.graph, io);
    } catch (const LayerError& error) {
      fail(node, error.what());
    }
  }

  const Config& config_;
  const ModelArrays& arrays_;
  Graph graph_;
  std::vector<std::string> scores_;
  std::set<TensorId> needed_;
  std::set<size_t> needed_nodes_;
  OnnxModel model_;
};

}  // namespace

OnnxKeys onnx_keys(const Config& config, const SparseInput& input) {
  OnnxKeys keys{.most = input.longest_kept()};
  for (const EmbeddingEntry& embedding : config.embeddings)
    keys.fixed |= embedding.section.bottom == input.top && !embedding.section.pooled();
  return keys;
}

OnnxModel onnx_model(const Config& config, const ModelArrays& arrays) { return Exporter(config, arrays).run(); }

int64_t no_key_of(const ModelArrays& arrays) {
  std::set<int64_t> least;  // table keys in [kNoKey, kNoKey + 0xffff]
  for (const TableArrays& table : arrays.tables)
    for (const int64_t key : table.keys)
      if (key <= kNoKey + 0xffff) least.insert(key);
  int64_t none = kNoKey;
  while (least.contains(none)) ++none;
  return none;
}

}  // namespace hctr
