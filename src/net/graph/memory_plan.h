// The memory of each tensor of a graph. Producers write directly into the columns of the Concat, or the rows of the
// Reshape, that reads them; layers need no code for it.
#pragma once

#include <optional>
#include <vector>

#include "core/device/arena.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"

namespace hctr {

/// The layout of batches of `samples` rows on a device. On a GPU dense values have the dtype of activations and padded
/// rows like other tensors, so that the wgrads of their readers join other layers' wgrads in one kernel. In TF32x3,
/// which has no such kernel, and on a CPU rows are contiguous, as uploaded.
BatchLayout batch_layout(const Config&, int64_t samples, Device);

/// The memory of one phase of one graph on one device: values and, for training, gradients.
class MemoryPlan {
 public:
  MemoryPlan(const Graph&, Phase, Device);
  /// Computes sizes only: allocates no memory. Until place() is called, only bytes() may be called.
  MemoryPlan(const Graph&, Phase);
  /// Arena::place().
  void place(Device device) { arena_.place(device); }

  /// Whether a tensor is part of the batch. Dense values are, unless activations have a dtype other than f32, or a
  /// Reshape needs them contiguous, which the batch does not guarantee.
  bool is_data(TensorId id) const { return id == label_ || id == dense_; }
  /// Whether layers may read these dense values in place, without a copy into the plan's memory.
  bool takes_as_data(const Graph&, const Tensor& dense) const;
  /// Where a layer writes its gradient of one of its inputs; none if that gradient is not needed.
  std::optional<Tensor> contribution(size_t node, size_t input) const;
  /// Value and gradient of a tensor. Errors: Error(bug) for the value of a tensor that is part of the batch.
  Tensor value(TensorId) const;
  Tensor gradient(TensorId) const;
  Tensor scratch(size_t node, size_t index) const;
  std::vector<Tensor> transient(size_t node) const;
  bool has_gradient(TensorId id) const { return gradients_[id].has_value(); }
  /// A gradient with several contributions, which are summed once all of them are written.
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
  /// The part of an output's region that the node's input could share, if the plan's hint allows.
  static std::optional<ArenaRegion> shared_part(const Graph&, const Node&, size_t input, const ArenaRegion& output);

  TensorId label_;
  std::optional<TensorId> dense_;
  Arena arena_;
  std::vector<bool> keep_dense_;  // read by the host, or by a Reshape in rows of another length
  std::vector<std::optional<ArenaRegion>> values_, gradients_;
  std::vector<std::vector<std::optional<ArenaRegion>>> contributions_;  // [node][input]
  std::vector<std::vector<ArenaRegion>> scratch_;                       // [node][index]
  std::vector<Specs> transient_;                                        // [node]
  std::vector<size_t> transient_tickets_;                               // [index]: memory shared by all nodes
  // [edge]: empty unless it has several contributions
  std::vector<std::vector<ArenaRegion>> to_sum_;
};

}  // namespace hctr
