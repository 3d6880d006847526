// The forward pass that a Scorer runs for each batch: losses, predictions and labels.
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
  /// The losses over all ranks: the weighted sum including penalties and, with several losses, each loss.
  virtual std::vector<Tensor> losses() const = 0;
  virtual std::vector<Tensor> predictions() const = 0;
  virtual std::vector<Tensor> labels(const Network::Binding&) const = 0;
  /// Checks the keys of a batch on the host, for tables with a direct index, unless check_keys() does so on the device.
  /// Errors: Error(data) naming a key outside the key ranges.
  virtual void expect_keys(const BatchView&) const {}
  /// Reports invalid keys of the batches computed so far. Errors: Error(data) naming a key outside the key ranges.
  virtual void check_keys() const {}
};

/// A forward pass that uses the replica's evaluation network and memory. The replica must outlive it.
std::unique_ptr<ForwardPass> forward_pass_of(Replica&);
/// A forward pass with its own activation memory, on one rank. Other threads may use the model's weights and rows
/// concurrently, but not its penalties. The transposed weight copies must be up to date. All arguments except the shape
/// must outlive it.
std::unique_ptr<ForwardPass> forward_pass_in_own_memory(Replica&, const Config&, Runtime&, Communicator&,
                                                        const BatchShape&);

}  // namespace hctr
