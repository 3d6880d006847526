// Frees memory once no lock-free reader uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace hctr {

/// Readers count themselves, for the length of a call, in one of two generations; what a writer retires is freed once
/// no reader that may have seen it is left (P. McKenney, "Sleepable read-copy update", 2006). Neither waits for the
/// other. Any number of readers; one thread at a time retires.
class ReadEpochs {
 public:
  class Reader {
   public:
    explicit Reader(ReadEpochs& epochs) : count_(epochs.enter()) {}
    ~Reader() { count_.fetch_sub(1, std::memory_order_release); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    std::atomic<int64_t>& count_;
  };

  /// Called when new readers can no longer find the memory. Frees memory without remaining readers.
  void retire(std::shared_ptr<void> memory);

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Counter {
    std::atomic<int64_t> readers{0};
  };
  std::atomic<int64_t>& enter();
  bool has_readers(uint32_t generation) const;

  std::atomic<uint32_t> current_{0};
  std::array<std::array<Counter, kStripes>, 2> counters_{};
  // What readers of the current generation may have seen; and what only those of the other one may have.
  std::vector<std::shared_ptr<void>> retired_, before_;
};

}  // namespace hctr
