// Assigns memory to each tensor of a graph. If a Concat or a Reshape reads a tensor, the producer writes directly into
// the reader's output. Layers need no code for this.
#pragma once

#include <optional>
#include <vector>

#include "core/device/arena.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"

namespace hctr {

/// The layout of batches of `samples` rows on a device. On a GPU, dense values have the same dtype and row padding as
/// other tensors. One kernel can then compute the wgrads of the layers that read dense values together with the wgrads
/// of other layers. TF32x3 has no such kernel: with TF32x3, as on a CPU, rows of dense values are contiguous, as
/// uploaded.
BatchLayout batch_layout(const Config&, int64_t samples, Device);

/// The memory of one phase of one graph on one device: values and, for training, gradients.
class MemoryPlan {
 public:
  MemoryPlan(const Graph&, Phase, Device);
  /// Computes sizes and allocates no memory. Until place() is called, only bytes() may be called.
  MemoryPlan(const Graph&, Phase);
  /// Assigns addresses without allocating memory; see Arena::place().
  void place(Device device) { arena_.place(device); }

  /// Whether a tensor is part of the batch. The label is part of the batch, and usually the dense values are. The plan
  /// has its own memory for dense values if activations are not f32, or if a Reshape needs contiguous values, which the
  /// batch does not guarantee.
  bool is_data(TensorId id) const { return id == label_ || id == dense_; }
  /// Whether layers may read `dense` in place. If not, the values are copied into the plan's memory.
  bool takes_as_data(const Graph&, const Tensor& dense) const;
  /// The memory to which the node writes the gradient of this input; none if the gradient is not needed.
  std::optional<Tensor> contribution(size_t node, size_t input) const;
  /// Value and gradient of a tensor. Errors: Error(bug) for the value of a tensor that is part of the batch.
  Tensor value(TensorId) const;
  Tensor gradient(TensorId) const;
  Tensor scratch(size_t node, size_t index) const;
  std::vector<Tensor> transient(size_t node) const;
  bool has_gradient(TensorId id) const { return gradients_[id].has_value(); }
  /// A gradient that is the sum of several contributions. The sum is computed once all contributions are written.
  struct Sum {
    TensorId edge;
    std::vector<Tensor> contributions;
  };
  std::vector<Sum> sums() const;
  size_t bytes() const { return arena_.bytes(); }

 private:
  /// A region of the arena: the ticket of an allocation, an element offset in that allocation, and the region's spec.
  struct ArenaRegion {
    size_t ticket;
    int64_t offset;
    TensorSpec spec;
  };
  ArenaRegion own(const TensorSpec&, bool dense);
  Tensor at(const ArenaRegion&) const;
  static ArenaRegion columns(const ArenaRegion&, int64_t begin, const TensorSpec&);
  static std::optional<ArenaRegion> reshaped(const ArenaRegion&, const TensorSpec&);
  void place_values(const Graph&);
  void place_gradients(const Graph&);
  void place_transient(const Graph&);
  /// The region of the node's output that the input could share, if LayerSpec::memory allows sharing.
  static std::optional<ArenaRegion> shared_part(const Graph&, const Node&, size_t input, const ArenaRegion& output);

  TensorId label_;
  std::optional<TensorId> dense_;
  Arena arena_;
  // [edge] whether the tensor must be contiguous, because the host reads it or a Reshape changes its row length
  std::vector<bool> keep_dense_;
  std::vector<std::optional<ArenaRegion>> values_, gradients_;
  std::vector<std::vector<std::optional<ArenaRegion>>> contributions_;  // [node][input]
  std::vector<std::vector<ArenaRegion>> scratch_;                       // [node][index in LayerSpec::scratch]
  std::vector<Specs> transient_;                                        // [node] LayerSpec::transient
  // [index in LayerSpec::transient] memory shared by all nodes
  std::vector<size_t> transient_tickets_;
  // [edge] the contributions to a gradient; empty for fewer than two contributions
  std::vector<std::vector<ArenaRegion>> to_sum_;
};

}  // namespace hctr
