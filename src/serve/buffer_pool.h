// Memory for the inputs of large requests, reused by later requests.
#pragma once

#include <cstddef>
#include <memory>

namespace hctr::serve {

/// Keeps buffers for later requests, because memory that is new from the system is slow at first use. Thread-safe.
/// Buffers may outlive the pool.
class BufferPool {
 public:
  /// The pool keeps at most this many bytes of unused buffers.
  static constexpr size_t kMostKept = size_t{64} << 20;

  BufferPool();
  /// Returns uninitialized memory. When its last owner releases the memory, the pool gets it back. Errors:
  /// std::bad_alloc.
  std::shared_ptr<char> take(size_t bytes);
  /// Bytes of unused buffers.
  size_t kept() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hctr::serve
