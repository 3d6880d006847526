// Records being written to a file by a thread while training continues.
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

/// Blocks of records, each with a place in the file, are written in order, so that the later one of two records with
/// one place wins. Until then records are in the memory of their block; records that could not be written stay there.
/// For one thread, except for find().
class DiskWrites {
 public:
  /// `most_run_bytes`: maximum size of a request. `file` must outlive this.
  DiskWrites(ScratchFile& file, int64_t record_bytes, size_t most_run_bytes)
      : file_(file),
        record_bytes_(static_cast<size_t>(record_bytes)),
        most_run_bytes_(most_run_bytes),
        thread_([this] { run(); }) {}
  /// Waits for the block that is being written. Later blocks are not written.
  ~DiskWrites();
  DiskWrites(const DiskWrites&) = delete;
  DiskWrites& operator=(const DiskWrites&) = delete;

  /// Writes record i to places[i]. `records` must not change until they are written, see wait().
  void start(std::span<const uint32_t> places, const std::byte* records);
  /// Waits until the block with these records is written or has failed; returns at once if there is none.
  void wait(const std::byte* records);
  void wait_for_all();
  /// Drops written blocks, except those after a failed one. Returns whether any block is left.
  bool any_left();
  bool has_unwritten() const;
  /// Any thread: whether the record of this place may be only in memory.
  bool is_unwritten(uint32_t place) const;
  /// The latest record of this place, if it is only in memory. Several threads may call it concurrently, as long as no
  /// other member is called.
  const std::byte* find(uint32_t place) const;

  /// A block that could not be written, and the reason.
  struct Failed {
    const std::byte* records = nullptr;
    size_t count = 0;
    std::exception_ptr error;
  };
  /// The oldest first.
  std::vector<Failed> failed() const;
  /// Drops the failed block with these records, after they have been saved elsewhere.
  void forget(const std::byte* records);

 private:
  enum class State { waits, written, failed };
  struct Block {
    const std::byte* records;
    std::vector<std::pair<uint32_t, uint32_t>> places;  // ascending, with the index of the record
    std::atomic<State> state = State::waits;
    std::exception_ptr error;

    const std::pair<uint32_t, uint32_t>* find(uint32_t place) const;
  };
  void run() noexcept;
  void write(const Block&);

  ScratchFile& file_;
  size_t record_bytes_, most_run_bytes_;
  std::deque<std::unique_ptr<Block>> blocks_;  // the oldest first; guarded by mutex_
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::deque<Block*> waiting_;  // behind mutex_
  bool stopped_ = false;        // likewise
  std::thread thread_;          // last: it uses the other members
};

}  // namespace hctr
