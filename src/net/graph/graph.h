// The wired network: its tensors, each tensor's producer and readers, and the order in which layers run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"

namespace hctr {

using TensorId = size_t;

/// A tensor of the graph.
struct Edge {
  std::string name;
  TensorSpec spec;
  std::optional<size_t> producer;  ///< index of the node; none: data or an embedding
  std::vector<size_t> readers;     ///< nodes, in running order; a node that reads it twice is listed twice
  bool needs_gradient = false;     ///< whether it depends on anything that is trained

  /// Removes it from the graph: no layer writes or reads it any more.
  void disconnect() {
    producer.reset();
    readers.clear();
    needs_gradient = false;
  }
};

/// A layer of the graph.
struct Node {
  const LayerEntry* entry;
  LayerSpec spec;
  std::vector<TensorId> in, out;  ///< a loss has a second, unnamed output: its prediction
  /// computes this layer and the layers fused into it; null: the layer stands alone
  std::shared_ptr<const Layer> fused{};
  /// For each input: the node that wrote it, if this node's backward pass also computes that node's drelu. Empty if
  /// there is none.
  std::vector<std::optional<size_t>> finishes{};
  /// For a loss that runs the layer of its logits in training: that layer, and the Add after it, if any.
  struct LogitNodes {
    size_t layer;
    std::optional<size_t> sum;
  };
  std::optional<LogitNodes> logit{};
  bool run_by_loss = false;  ///< whether a loss runs this node
  const Layer& layer() const { return fused ? *fused : *entry->layer; }
  bool is_loss() const { return dynamic_cast<const LossLayer*>(entry->layer.get()) != nullptr; }
};

struct Graph {
  std::vector<Edge> edges;
  std::vector<Node> nodes;  ///< in running order
  TensorId label = 0;
  std::optional<TensorId> dense;  ///< none when dense_dim is 0
  std::vector<TensorId>
      embeddings;  ///< output of each embedding, [samples, columns, dim]; columns: its slots when pooled
  std::vector<std::optional<TensorId>>
      lengths;  ///< for each embedding, if the config names them: the number of keys of each slot, [samples, slots]
  std::vector<size_t> embedding_inputs;  ///< the sparse input (index into data.sparse) that each embedding reads
  std::vector<size_t> losses;            ///< the nodes that are losses, in the order of the config
  int64_t parameters = 0;                ///< dense weights

  /// Whether the tensor has a gradient but no reader: the gradient is zero. Outputs of losses have no gradient.
  bool unread(TensorId) const;
};

/// Connects the layers for batches of `samples` rows. Adds errors to `problems`: unknown and duplicate names, cycles
/// and, if `problems` holds no other error, shapes. The result is complete only if `problems` holds no error
/// afterwards. Keeps pointers into `config`.
Graph wire(const Config& config, int64_t samples, Problems& problems);

/// The layer table to print: name, type, output shape, parameters.
std::string layer_table(const Config&, const Graph&);

}  // namespace hctr
