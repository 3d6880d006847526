// A tensor with guard bytes around its elements, which detects writes outside the elements and elements that are never
// written.
#pragma once

#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/stream.h"
#include "core/device/tensor.h"

namespace hctr::test {

/// Memory layout of the rows of a tensor.
struct RowLayout {
  const char* name;
  int64_t multiple = 1, extra = 0;  ///< row stride: the elements of a row, rounded up to this multiple, plus `extra`
  int64_t offset = 0;               ///< elements between a 256-byte boundary and the first element
};

/// Owns the memory of one tensor. All bytes outside its elements are 0xff, which reads as NaN.
class GuardedTensor {
 public:
  GuardedTensor(Device, DType, Shape, const RowLayout&);

  Tensor tensor() const { return tensor_; }
  /// Sets the elements, rounded to the dtype. restore() sets these elements again.
  void set(const std::vector<double>& values, StreamRef);
  /// Fills the elements with 0xff bytes, so that an operator must write them.
  void poison(StreamRef);
  /// Restores the state after the last set() or poison().
  void restore(StreamRef);
  /// Copies the whole buffer to the host. Call before the functions below.
  void fetch(StreamRef);
  std::vector<double> values() const;
  std::vector<std::byte> element_bytes() const;
  /// Describes a violation, such as "element 5 of row 0 was never written"; empty if there is none.
  std::string complaint(bool must_be_written, bool must_be_unchanged) const;

 private:
  template <class Body>
  void each_element(const Body& body) const;

  Buffer buffer_;
  Tensor tensor_;
  size_t begin_;  // offset of the first element in the buffer
  std::vector<std::byte> initial_, now_;
};

/// Returns `value` rounded to the dtype.
double rounded_to(DType, double value);

}  // namespace hctr::test
