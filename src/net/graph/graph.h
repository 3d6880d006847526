// The network as a graph: tensors with their producers and readers, and layers in running order.
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
  std::optional<size_t> producer;  ///< index of the node that writes this tensor; none: data or an embedding
  /// the nodes that read this tensor, in running order; a node that reads it with k inputs is listed k times
  std::vector<size_t> readers;
  bool needs_gradient = false;  ///< whether the tensor depends on trained weights or rows

  /// Removes the tensor from the graph. The tensor then has no producer and no reader.
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
  std::vector<TensorId> in, out;  ///< the second output of a loss is its prediction, which has no name
  /// computes this layer and the layers fused with it; null: the layer is not fused
  std::shared_ptr<const Layer> fused{};
  /// [input] the node that wrote the input, if this node's backward pass also computes that node's drelu; otherwise
  /// none. The vector is empty if this node computes no other node's drelu.
  std::vector<std::optional<size_t>> finishes{};
  /// The nodes that a loss runs in training: the layer of its logits and, optionally, the Add after that layer.
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
      /// the output of each embedding, [samples, columns, dim]; a pooled embedding has one column per slot
      embeddings;
  std::vector<std::optional<TensorId>>
      /// [embedding] the number of keys of each bag, [samples, slots]; none if the config does not name this tensor
      lengths;
  std::vector<size_t> embedding_inputs;  ///< the sparse input (index into data.sparse) that each embedding reads
  std::vector<size_t> losses;            ///< the nodes with a loss, in the order of the config
  int64_t parameters = 0;                ///< number of dense weights

  /// Whether the tensor has a gradient although no layer reads the tensor. The gradient is then zero. Outputs of losses
  /// have no gradient.
  bool unread(TensorId) const;
};

/// Connects the layers for batches of `samples` rows. Adds an error to `problems` for each unknown name, duplicate name
/// and cycle. Checks shapes only if `problems` holds no error after these checks. The graph is complete only if
/// `problems` holds no error on return. The graph keeps pointers into `config`.
Graph wire(const Config& config, int64_t samples, Problems& problems);

/// The layer table to print: name, type, output shape, parameters.
std::string layer_table(const Config&, const Graph&);

}  // namespace hctr
