// Copies of constant weights in the layout of the CPU's GEMM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "core/device/tensor.h"
#include "ops/gemm/ordered_product.h"

namespace hctr::ops {

/// Packed copies of the weights of a model whose weights do not change. add() must not run concurrently with other
/// calls.
class PackedWeights {
 public:
  /// Packs an f32 matrix in CPU memory that a GEMM may read as its right operand. Ignores other tensors, and matrices
  /// that have fewer columns than a panel. The tensor's memory must keep its address and contents.
  void add(const Tensor& w);
  /// The panels of a matrix; none if add() did not pack exactly this matrix.
  std::optional<PanelMatrix> find(const Tensor& w) const;
  size_t bytes() const { return bytes_; }

 private:
  struct FreeAligned {
    void operator()(float* panels) const;
  };
  struct Packed {
    TensorSpec spec;
    std::unique_ptr<float[], FreeAligned> panels;
  };
  std::map<const void*, Packed> packed_;  // [address of the matrix]
  size_t bytes_ = 0;
};

}  // namespace hctr::ops
