// A reserve of memory for work that must not fail when the system is out of memory, such as saving a model.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

namespace hctr {

/// Reserves address space without pages. The reserve counts against `ulimit -d` and `-v`, but uses no physical memory.
/// Thread-safe.
class MemoryReserve {
 public:
  MemoryReserve() = default;
  ~MemoryReserve() { release(); }
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  /// Adds `bytes` to the reserve. Does nothing after release(). Errors: Error(device) if the system refuses; the
  /// existing reserve stays.
  void add(size_t bytes);
  /// Returns the whole reserve to the system; later calls of add() do nothing. Returns whether there was a reserve.
  /// Does not allocate memory, so that a handler of operator new may call release().
  bool release() noexcept;
  /// Whether a non-empty reserve has been released.
  bool released() const noexcept { return released_; }
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<bool> released_ = false;
};

/// The bytes that one user of a MemoryReserve has added.
class ReservedShare {
 public:
  explicit ReservedShare(MemoryReserve* reserve) : reserve_(reserve) {}
  /// Grows the share to `bytes`, but never shrinks it. Does nothing without a reserve. Errors: those of
  /// MemoryReserve::add().
  void grow_to(size_t bytes) {
    if (!reserve_ || bytes <= bytes_) return;
    reserve_->add(bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  MemoryReserve* reserve_;
  size_t bytes_ = 0;
};

}  // namespace hctr
