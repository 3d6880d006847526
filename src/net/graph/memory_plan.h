// The memory of each tensor of a graph. Producers write directly to the columns of the Concat, or the rows of the
// Reshape, that reads them: layers do not know of it.
#pragma once

#include <optional>
#include <vector>

#include "core/device/arena.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"

namespace hctr {

/// The layout of batches of `samples` rows for a device. On a GPU dense values have the dtype of activations, and rows
/// of them lie as those of other tensors do, so that the gradients of the weights that read them join those of other
/// layers in one kernel. In TF32x3, which has no such kernel, and on a CPU rows follow each other, as they are
/// uploaded.
BatchLayout batch_layout(const Config&, int64_t samples, Device);

/// The memory of one phase of one graph on one device. Values and, for training, gradients.
class MemoryPlan {
 public:
  MemoryPlan(const Graph&, Phase, Device);
  /// The sizes alone: no memory is allocated, and only bytes() may be called, unless place() is.
  MemoryPlan(const Graph&, Phase);
  /// Arena::place().
  void place(Device device) { arena_.place(device); }

  /// Whether a tensor is part of the batch. Dense values are, unless activations have another dtype than f32, or a
  /// Reshape needs them in one piece, which they may not be there.
  bool is_data(TensorId id) const { return id == label_ || id == dense_; }
  /// Whether layers may read these dense values where they are, instead of copying them to the memory of the plan.
  bool takes_as_data(const Graph&, const Tensor& dense) const;
  /// Where a layer writes its gradient for one of its inputs; none if it is not needed.
  std::optional<Tensor> contribution(size_t node, size_t input) const;
  /// Value and gradient of a tensor. Errors: Error(bug) for the value of data, which is part of the batch.
  Tensor value(TensorId) const;
  Tensor gradient(TensorId) const;
  Tensor scratch(size_t node, size_t index) const;
  std::vector<Tensor> transient(size_t node) const;
  bool has_gradient(TensorId id) const { return gradients_[id].has_value(); }
  /// A gradient with several contributions, which are summed once all are written.
  struct Sum {
    TensorId edge;
    std::vector<Tensor> contributions;
  };
  std::vector<Sum> sums() const;
  size_t bytes() const { return arena_.bytes(); }

 private:
  /// A region of the arena: a ticket, an offset in elements and the spec there.
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
  /// The part of the region of a node's output that its input could share, if the plan's hint allows.
  static std::optional<ArenaRegion> shared_part(const Graph&, const Node&, size_t input, const ArenaRegion& output);

  TensorId label_;
  std::optional<TensorId> dense_;
  Arena arena_;
  std::vector<bool> keep_dense_;  // read by a Reshape in rows of another length, or by the host
  std::vector<std::optional<ArenaRegion>> values_, gradients_;
  std::vector<std::vector<std::optional<ArenaRegion>>> contributions_;  // [node][input]
  std::vector<std::vector<ArenaRegion>> scratch_;                       // [node][index]
  std::vector<Specs> transient_;                                        // [node]
  std::vector<size_t> transient_tickets_;                               // [index]: the memory that all nodes share
  std::vector<std::vector<ArenaRegion>> to_sum_;                        // [edge]: empty unless several contribute
};

}  // namespace hctr
