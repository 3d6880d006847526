// Turns a list of specs into one buffer and stable tensors, once.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/buffer.h"
#include "device/tensor.h"

namespace hctr {

/// Ask for tensors with add(); build() allocates one zeroed buffer for all; then get() gives each, at an address that
/// stays. Every tensor starts at a multiple of 256 bytes (of 128 where add_alike halved the elements).
class Arena {
 public:
  /// The ticket for get().
  size_t add(const TensorSpec&);
  /// The same tensors, under the same tickets, with elements of another type and all in the same order. For an empty
  /// arena.
  void add_alike(const Arena&, DType);
  void build(Device);
  Tensor get(size_t ticket) const;
  size_t bytes() const { return bytes_; }
  /// All of it, of one type, as a flat tensor, padding (zero, and left so by element-wise work on zeros) included.
  Tensor flat(DType dtype = DType::f32) const;

 private:
  struct Place {
    TensorSpec spec;
    size_t offset;
  };
  std::vector<Place> places_;
  size_t bytes_ = 0;
  std::optional<Buffer> buffer_;
};

}  // namespace hctr
