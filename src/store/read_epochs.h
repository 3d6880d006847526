// Frees memory once no lock-free reader uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace hctr {

/// Readers register for the duration of a call; retired memory is freed once all readers that may have seen it have
/// finished (K. Fraser, "Practical lock-freedom", 2004, chapter 5: epochs). Any number of readers; one thread at a time
/// retires memory.
class ReadEpochs {
 public:
  ReadEpochs() : readers_(kReaders) {}

  class Reader {
   public:
    explicit Reader(ReadEpochs& epochs) : slot_(epochs.enter()) {}
    ~Reader() { slot_.store(0, std::memory_order_release); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    std::atomic<uint64_t>& slot_;
  };

  /// Called when new readers can no longer find the memory. Frees memory without remaining readers.
  void retire(std::shared_ptr<void> memory);

 private:
  static constexpr size_t kReaders = 32;
  struct alignas(64) Slot {
    std::atomic<uint64_t> epoch{0};  // 0: nobody
  };
  struct Retired {
    uint64_t epoch;
    std::shared_ptr<void> memory;
  };
  std::atomic<uint64_t>& enter();

  std::atomic<uint64_t> epoch_{1};
  std::vector<Slot> readers_;
  std::vector<Retired> retired_;
};

}  // namespace hctr
