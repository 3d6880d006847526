// Frees memory when no lock-free reader uses it any more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace hctr {

/// A call of a reader belongs to one of two generations, and increments the generation's counter. Memory that a writer
/// retires is freed once no reader can still access it (P. McKenney, "Sleepable read-copy update", 2006). Readers and
/// writer do not wait for each other. There may be any number of readers, but only one thread at a time may retire
/// memory.
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

  /// Call when new readers can no longer find the memory. Also frees all retired memory that has no readers left.
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
  // retired_: readers of the current generation may use it. before_: only readers of the other generation may use it.
  std::vector<std::shared_ptr<void>> retired_, before_;
};

}  // namespace hctr
