// Memory for large tables, in huge pages where the system has them.
#pragma once

#include <cstddef>

namespace hctr {

/// Zeroed memory. Pages are allocated when they are first written. Huge pages make random reads faster, because their
/// addresses fit into the processor's address caches, and first writes faster, because there are fewer of them.
class HugeMemory {
 public:
  /// Errors: std::bad_alloc.
  explicit HugeMemory(size_t bytes);
  ~HugeMemory();
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;

  std::byte* data() const { return data_; }
  /// Returns the whole pages of a part to the system. The part must not be used afterwards.
  void release(const std::byte* from, size_t bytes) const noexcept;

 private:
  std::byte *data_ = nullptr, *mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

}  // namespace hctr
