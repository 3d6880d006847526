// Records on their way to a file: a thread writes them while training goes on.
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

/// Blocks of records, each with a place in the file, are written one after the other, so that of two records with one
/// place the later one is there at last. Until then the memory of a block has its records, also where they could not be
/// written. For one thread, but for find().
class DiskWrites {
 public:
  /// `most_run_bytes`: in one request. `file` outlives this.
  DiskWrites(ScratchFile& file, int64_t record_bytes, size_t most_run_bytes)
      : file_(file),
        record_bytes_(static_cast<size_t>(record_bytes)),
        most_run_bytes_(most_run_bytes),
        thread_([this] { run(); }) {}
  /// Waits for what is being written. What has not begun is not written.
  ~DiskWrites();
  DiskWrites(const DiskWrites&) = delete;
  DiskWrites& operator=(const DiskWrites&) = delete;

  /// Record i goes to places[i]. `records` stay as they are until they are written, see wait().
  void start(std::span<const uint32_t> places, const std::byte* records);
  /// Waits until the block whose records are there is written or has failed; returns at once where there is none.
  void wait(const std::byte* records);
  void wait_for_all();
  /// Forgets blocks that are written, but for those behind one that has failed. Returns whether any is left.
  bool any_left();
  bool has_unwritten() const;
  /// Any thread: whether the record of this place may be in memory alone.
  bool is_unwritten(uint32_t place) const;
  /// The record of this place, if it is in memory alone: the last one that was given for it. Several threads may call
  /// it at a time, as long as no other member is called.
  const std::byte* find(uint32_t place) const;

  /// A block that could not be written, and why.
  struct Failed {
    const std::byte* records = nullptr;
    size_t count = 0;
    std::exception_ptr error;
  };
  /// The oldest first.
  std::vector<Failed> failed() const;
  /// The failed block with these records: they are somewhere else now.
  void forget(const std::byte* records);

 private:
  enum class State { waits, written, failed };
  struct Block {
    const std::byte* records;
    std::vector<std::pair<uint32_t, uint32_t>> places;  // ascending, with the number of the record
    std::atomic<State> state = State::waits;
    std::exception_ptr error;

    const std::pair<uint32_t, uint32_t>* find(uint32_t place) const;
  };
  void run() noexcept;
  void write(const Block&);

  ScratchFile& file_;
  size_t record_bytes_, most_run_bytes_;
  std::deque<std::unique_ptr<Block>> blocks_;  // the oldest first; changed behind mutex_
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Block*> waiting_;  // behind mutex_
  bool stopped_ = false;        // likewise
  std::thread thread_;          // last: it uses the other members
};

}  // namespace hctr
