// Writes records to a file in a thread while training continues.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/scratch_file.h"

namespace hctr {

/// Writes blocks of records in order, so of two records with the same place the later one stays. Until a block is
/// written, find() returns its records from the block's memory. A block whose write failed stays in memory. Not
/// thread-safe, except is_unwritten(); find() states when threads may call it.
class DiskWrites {
 public:
  /// `most_run_bytes`: maximum bytes of a write. `file` must outlive this object.
  DiskWrites(ScratchFile& file, int64_t record_bytes, size_t most_run_bytes)
      : file_(file),
        record_bytes_(static_cast<size_t>(record_bytes)),
        most_run_bytes_(most_run_bytes),
        thread_([this] { run(); }) {}
  /// Waits for the block that is being written. Does not write later blocks.
  ~DiskWrites();
  DiskWrites(const DiskWrites&) = delete;
  DiskWrites& operator=(const DiskWrites&) = delete;

  /// Starts to write record i to places[i]. `records` must not change until wait() returns.
  void start(std::span<const uint32_t> places, const std::byte* records);
  /// Waits until the block with these records is written or has failed. Returns immediately if there is no such block.
  void wait(const std::byte* records);
  void wait_for_all();
  /// Drops written blocks, but none after a failed block. Returns whether any block is left.
  bool any_left();
  bool has_unwritten() const;
  /// Whether the record of this place may be only in memory. Thread-safe.
  bool is_unwritten(uint32_t place) const;
  /// Returns the latest record of this place if a block still holds it, else null. Several threads may call find()
  /// concurrently while no other member is called.
  const std::byte* find(uint32_t place) const;

  /// A block whose write failed, and the reason.
  struct Failed {
    const std::byte* records = nullptr;
    size_t count = 0;
    std::exception_ptr error;
  };
  /// The failed blocks, oldest first.
  std::vector<Failed> failed() const;
  /// Drops the failed block with these records, after its records have been written elsewhere.
  void forget(const std::byte* records);

 private:
  enum class State { waits, written, failed };
  struct Block {
    const std::byte* records;
    std::vector<std::pair<uint32_t, uint32_t>> places;  // (place, index of the record), sorted by place
    std::atomic<State> state = State::waits;
    std::exception_ptr error;

    const std::pair<uint32_t, uint32_t>* find(uint32_t place) const;
  };
  void run() noexcept;
  void write(const Block&);

  ScratchFile& file_;
  size_t record_bytes_, most_run_bytes_;
  std::deque<std::unique_ptr<Block>> blocks_;  // oldest first; guarded by mutex_
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Block*> waiting_;  // guarded by mutex_
  bool stopped_ = false;        // guarded by mutex_
  std::thread thread_;          // declared last, because the thread uses the other members
};

}  // namespace hctr
