// The forward pass of a model in memory of its own.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/table/table_reader.h"
#include "formats/data/batch_layout.h"
#include "net/model/replica.h"

namespace hctr {

/// Weights and rows are those of a replica on one rank, which others use concurrently; activations are its own.
class SharedForward {
 public:
  /// For batches of this shape. The arguments outlive it, but for the shape.
  /// `reader_of`: looks up in place of the replica's table, where it is given and gives one.
  using ReaderOf = std::function<std::unique_ptr<TableReader>(size_t embedding, int64_t key_capacity)>;
  SharedForward(Replica&, const Config&, Runtime&, Communicator&, const BatchShape&, const ReaderOf& reader_of = {});
  SharedForward(const SharedForward&) = delete;
  SharedForward& operator=(const SharedForward&) = delete;

  const Network& network() const { return network_; }
  /// Look-ups and layers, in stream order.
  void run(Context&, const BatchTensors&, const Network::Binding&);

 private:
  Graph graph_;
  Network network_;
  std::vector<std::unique_ptr<TableReader>> readers_;  // per embedding
};

}  // namespace hctr
