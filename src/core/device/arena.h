// One allocation for many tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/tensor.h"

namespace hctr {

/// Call add() for every tensor, then build(), then get() for each tensor. build() allocates one zeroed buffer for all
/// tensors. Addresses do not change. Every tensor is aligned to 256 bytes, or to 128 bytes if add_alike() halved the
/// element size.
class Arena {
 public:
  /// Returns the ticket to pass to get().
  size_t add(const TensorSpec&);
  /// Adds the tensors of another arena, but with the given dtype. Order and tickets are the same. This arena must be
  /// empty.
  void add_alike(const Arena&, DType);
  void build(Device);
  /// Replaces build() when planning for a device that may not exist. Assigns nonzero addresses without memory. The
  /// addresses must not be accessed.
  void place(Device);
  Tensor get(size_t ticket) const;
  size_t bytes() const { return bytes_; }
  /// The whole buffer, including padding, as one tensor of rank 1. Padding is zero and stays zero under element-wise
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
  bool built_ = false;  // true after build() or place()
  Device device_;
};

}  // namespace hctr
