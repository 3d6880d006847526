// Writes a file in large blocks, in background threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Blocks bypass the page cache if their file offset and size are multiples of kPage and the file system supports this.
/// The disk then writes at its full rate, and the processor does not copy the bytes. Thread-safe.
class BlockWriter {
 public:
  static constexpr int64_t kPage = 4096;
  /// `block_bytes`: the largest size of a block. Errors: Error(io) if the file cannot be opened.
  BlockWriter(fs::path, int64_t block_bytes);
  /// Discards blocks that are not written yet.
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  /// Memory for a block, aligned to kPage. Waits while all kBlocks blocks are in use. Errors: Error(io) if a block
  /// could not be written.
  std::byte* take();
  /// Queues the write of a block, which take() returned, at a byte offset of the file. Returns immediately. The block's
  /// memory becomes available again after the write.
  void write(int64_t offset, std::byte* block, int64_t bytes);
  /// Waits until all blocks are written. The disk's cache may still contain them. Errors: Error(io) if a block could
  /// not be written.
  void finish();

 private:
  static constexpr size_t kBlocks = 8, kThreads = 2;
  struct Job {
    int64_t offset;
    std::byte* block;
    int64_t bytes;
  };
  void end() noexcept;
  void serve();
  /// Writes a block to the file. Returns the system's error number; 0: no error.
  int put(const Job&);
  void check() const;

  fs::path path_;
  int64_t block_bytes_;
  // File descriptors: `cached_` uses the page cache, `direct_` bypasses it (-1: unsupported).
  int cached_ = -1, direct_ = -1;
  std::mutex mutex_;
  std::condition_variable wanted_, written_;
  std::deque<Job> jobs_{};
  std::vector<std::byte*> all_{}, free_{};
  size_t writing_ = 0;
  int error_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_{};
};

}  // namespace hctr
