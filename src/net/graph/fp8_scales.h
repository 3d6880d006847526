// FP8 GEMMs: their number in a graph, and the scales of their tensors.
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

/// The number of weights with FP8 GEMMs.
size_t fp8_products(const Graph&);

class Fp8Scales {
 public:
  /// Errors: Error(device) if the graph has FP8 GEMMs and the device does not support FP8.
  Fp8Scales(const Graph&, Runtime&);

  std::vector<ops::Fp8ProductScaling> of_node(size_t node) const;
  /// Call at the end of a step. Computes the scales of the next step, which are equal on every rank.
  void finish(Context&, Communicator&) const;

  /// Checkpoints save and load the scales.
  void save_state(StateWriter to) const { to.array("scales", "u8", shape(), scales_.data()); }
  void load_state(const StateReader& from) { from.array("scales", "u8", shape(), scales_.data()); }
  bool empty() const { return products_ == 0; }

 private:
  static constexpr size_t kTensors = 3;  // tensors of a GEMM: x, w, d_y
  std::vector<int64_t> shape() const {
    return {static_cast<int64_t>(products_ * kTensors), static_cast<int64_t>(sizeof(ops::Fp8Scale))};
  }
  ops::Fp8Scaling scaling(size_t number, ops::Fp8Format) const;

  std::vector<size_t> first_;  // [node] index of the node's first FP8 GEMM; the last entry is the number of GEMMs
  size_t products_;
  Buffer scales_;  // kTensors scales for each GEMM
  Arena amax_;
};

}  // namespace hctr
