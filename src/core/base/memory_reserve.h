// Memory reserved for work that must not fail once the system refuses more, such as saving a model.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

namespace hctr {

/// Address space without pages: it counts against `ulimit -d` and `-v`, and takes no memory. Members may be called by
/// several threads.
class MemoryReserve {
 public:
  MemoryReserve() = default;
  ~MemoryReserve() { release(); }
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  /// Reserves this many more bytes until they are released. Errors: Error(device) when the system has no more; the
  /// existing reserve stays.
  void add(size_t bytes);
  /// Returns all of it to the system, permanently. Returns whether there was any. Allocates nothing, so that a handler
  /// of operator new may call it.
  bool release() noexcept;
  /// Whether memory was refused, and the reserve has been released for that.
  bool released() const noexcept { return released_; }
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<bool> released_ = false;
};

/// The part of a reserve that one of its users has requested.
class ReservedShare {
 public:
  explicit ReservedShare(MemoryReserve* reserve) : reserve_(reserve) {}
  /// Sets the share to this many bytes; it does not shrink. Without a reserve, does nothing. Errors: those of add().
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
