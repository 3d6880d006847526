// A forward pass with its own activation memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/table/table_reader.h"
#include "formats/data/batch_layout.h"
#include "net/model/replica.h"

namespace hctr {

/// Uses the weights and rows of a replica on one rank concurrently with other threads. Activations are separate.
class SharedForward {
 public:
  /// The constructor prepares forward passes for batches of a BatchShape. All arguments except the shape must outlive
  /// this object. `reader_of` (optional): returns a TableReader that replaces the replica's table in lookups, or null
  /// for the replica's table.
  using ReaderOf = std::function<std::unique_ptr<TableReader>(size_t embedding, int64_t key_capacity)>;
  SharedForward(Replica&, const Config&, Runtime&, Communicator&, const BatchShape&, const ReaderOf& reader_of = {});
  SharedForward(const SharedForward&) = delete;
  SharedForward& operator=(const SharedForward&) = delete;

  const Network& network() const { return network_; }
  /// The logits that each loss reads, for the batch of a binding. They have the dtype of activations, and may have any
  /// row stride.
  std::vector<Tensor> logits(const Network::Binding&) const;
  /// [embedding] the index of the sparse input that the embedding reads.
  const std::vector<size_t>& embedding_inputs() const { return graph_.embedding_inputs; }
  /// Queues the lookups and layers on the context's stream.
  void run(Context&, const BatchTensors&, const Network::Binding&);

 private:
  Graph graph_;
  Network network_;
  std::vector<std::unique_ptr<TableReader>> readers_;  // per embedding
  // [embedding] whether it reads the replica's table; a Lockstep merges the launches of such embeddings.
  std::vector<bool> of_replica_;
};

}  // namespace hctr
