// A tensor between guard words: writes outside its elements, and elements never written, are found.
#pragma once

#include <string>
#include <vector>

#include "device/buffer.h"
#include "device/stream.h"
#include "device/tensor.h"

namespace hctr::test {

/// How a tensor's rows lie in memory.
struct Placement {
  const char* name;
  int64_t multiple = 1, extra = 0;  ///< row stride: row elements up to this multiple, and so many more
  int64_t offset = 0;               ///< elements from a multiple of 256 bytes to the first one
};

/// Owns the memory of one tensor. Every byte that is no element is 0xff: NaN, as far as it is read as a number.
class GuardedTensor {
 public:
  GuardedTensor(Device, DType, Shape, const Placement&);

  Tensor tensor() const { return tensor_; }
  /// Elements, rounded to the dtype; kept for restore().
  void set(const std::vector<double>& values, StreamRef);
  /// Every element 0xff bytes: an operator must write it.
  void poison(StreamRef);
  /// As after the last set() or poison().
  void restore(StreamRef);
  /// Reads all memory. Then: the elements as numbers, as bytes, what lies around them.
  void fetch(StreamRef);
  std::vector<double> values() const;
  std::vector<std::byte> element_bytes() const;
  /// What is wrong: "", or "bytes outside the tensor were written", "element 5 was never written".
  std::string complaint(bool must_be_written, bool must_be_unchanged) const;

 private:
  template <class Body>
  void each_element(const Body& body) const;

  Buffer buffer_;
  Tensor tensor_;
  size_t begin_;  // of the first element, in the buffer
  std::vector<std::byte> initial_, now_;
};

/// `value` as the dtype holds it.
double rounded_to(DType, double value);

}  // namespace hctr::test
