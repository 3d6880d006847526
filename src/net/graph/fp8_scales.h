// GEMMs in FP8: how many a graph has, and the scales of their tensors.
#pragma once

#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/device/arena.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "net/graph/graph.h"
#include "ops/gemm/fp8_scaling.h"

namespace hctr {

/// The number of weights whose GEMMs run in FP8.
size_t fp8_products(const Graph&);

class Fp8Scales {
 public:
  /// Errors: Error(device) where the graph has such products and the device cannot compute them.
  Fp8Scales(const Graph&, Runtime&);

  std::vector<ops::Fp8ProductScaling> of_node(size_t node) const;
  /// Call at the end of a step: computes the scales of the next one, the same on every rank.
  void finish(Context&, Communicator&) const;

  /// For checkpoints.
  void save_state(StateWriter to) const { to.array("scales", "u8", shape(), scales_.data()); }
  void load_state(const StateReader& from) { from.array("scales", "u8", shape(), scales_.data()); }
  bool empty() const { return products_ == 0; }

 private:
  static constexpr size_t kTensors = 3;  // of a product: x, w, d_y
  std::vector<int64_t> shape() const {
    return {static_cast<int64_t>(products_ * kTensors), static_cast<int64_t>(sizeof(ops::Fp8Scale))};
  }
  ops::Fp8Scaling scaling(size_t number, ops::Fp8Format) const;

  std::vector<size_t> first_;  // [node] index of its first GEMM; one more entry at the end
  size_t products_;
  Buffer scales_;  // three for each GEMM
  Arena amax_;
};

}  // namespace hctr
