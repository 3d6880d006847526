// What a Scorer computes for a batch: losses, predictions and labels.
#pragma once

#include <memory>
#include <vector>

#include "formats/data/batch_layout.h"
#include "net/model/replica.h"

namespace hctr {

class ForwardPass {
 public:
  virtual ~ForwardPass() = default;
  virtual Network::Binding bind(const BatchTensors&) const = 0;
  virtual void run(Context&, const BatchTensors&, const Network::Binding&) = 0;
  /// First the weighted sum of all losses and the penalties; of several losses then each. Over all ranks.
  virtual std::vector<Tensor> losses() const = 0;
  virtual std::vector<Tensor> predictions() const = 0;
  virtual std::vector<Tensor> labels(const Network::Binding&) const = 0;
  /// Errors: Error(data) naming a key of a batch on the host that is outside the ranges of a table with direct keys,
  /// where check_keys() does not find it.
  virtual void expect_keys(const BatchView&) const {}
  /// Errors: Error(data) naming such a key of the batches computed so far.
  virtual void check_keys() const {}
};

/// The evaluation of a replica, in its memory. The replica outlives it.
std::unique_ptr<ForwardPass> forward_pass_of(Replica&);
/// In memory of its own, on one rank: others use weights and rows concurrently, but not the penalties, if the model has
/// some. The transposed copies of weights have been written. The arguments outlive it, but for the shape.
std::unique_ptr<ForwardPass> forward_pass_beside(Replica&, const Config&, Runtime&, Communicator&, const BatchShape&);

}  // namespace hctr
