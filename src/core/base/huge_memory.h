// Memory for large tables, in huge pages where the system has them.
#pragma once

#include <cstddef>

namespace hctr {

/// Zeroed memory. Pages are allocated when they are first written. Huge pages speed up random reads, because the TLB
/// covers more memory, and first writes, because there are fewer pages to allocate.
class HugeMemory {
 public:
  /// Errors: std::bad_alloc.
  explicit HugeMemory(size_t bytes);
  ~HugeMemory();
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;

  std::byte* data() const { return data_; }
  /// Returns to the system the pages that lie entirely in [from, from + bytes). This range must not be used afterwards.
  void release(const std::byte* from, size_t bytes) const noexcept;

 private:
  std::byte *data_ = nullptr, *mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

}  // namespace hctr
