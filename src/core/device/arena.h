// One allocation for many tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/tensor.h"

namespace hctr {

/// First add() every tensor, then build() allocates one zeroed buffer for all of them, then get() returns each.
/// Addresses do not change. Every tensor starts at a multiple of 256 bytes (128 if add_alike halved the size of
/// elements).
class Arena {
 public:
  /// Returns the ticket that get() takes.
  size_t add(const TensorSpec&);
  /// Adds the tensors of another arena, with the same tickets and in the same order, but of another dtype. This arena
  /// must be empty.
  void add_alike(const Arena&, DType);
  void build(Device);
  /// Instead of build(): assigns nonzero addresses without memory, which must not be read or written. For plans of a
  /// device that need not exist.
  void place(Device);
  Tensor get(size_t ticket) const;
  size_t bytes() const { return bytes_; }
  /// The whole buffer as one tensor of one dimension, padding included. Padding is zero and stays so under element-wise
  /// operators that map zero to zero.
  Tensor flat(DType dtype = DType::f32) const;

 private:
  struct Region {
    TensorSpec spec;
    size_t offset;
  };
  std::vector<Region> regions_;
  size_t bytes_ = 0;
  std::optional<Buffer> buffer_;
  std::byte* data_ = nullptr;
  bool built_ = false;  // or placed
  Device device_;
};

}  // namespace hctr
