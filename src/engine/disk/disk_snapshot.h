// The rows on disk at one moment, for a thread that reads them later.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/scratch_file.h"
#include "engine/disk/disk_rows.h"

namespace hctr {

/// Whether a snapshot still exists. Any thread.
class SnapshotUse {
 public:
  void end();
  bool ended() const;
  /// Waits for its end.
  void wait();
  /// Seconds spent in wait().
  double waited() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  double waited_ = 0;
};

/// During its life DiskRows does not overwrite its rows.
class DiskSnapshot {
 public:
  DiskSnapshot(std::vector<DiskRows::Row> rows, std::shared_ptr<const ScratchFile> file, std::string label,
               int64_t record_bytes, std::shared_ptr<SnapshotUse> use);
  ~DiskSnapshot();
  DiskSnapshot(const DiskSnapshot&) = delete;
  DiskSnapshot& operator=(const DiskSnapshot&) = delete;

  /// In file order.
  std::span<DiskRows::Row> rows() { return rows_; }
  /// Reads the record of each of `rows`, some of rows(), to `records`. Any one thread. Errors: those of
  /// DiskRows::read().
  void read(std::span<const DiskRows::Row> rows, std::byte* records) const;
  int64_t record_bytes() const { return record_bytes_; }
  const std::shared_ptr<SnapshotUse>& use() const { return use_; }

 private:
  std::vector<DiskRows::Row> rows_;
  std::shared_ptr<const ScratchFile> file_;
  std::string label_;
  int64_t record_bytes_;
  std::shared_ptr<SnapshotUse> use_;
};

/// Errors: Error(io) naming the row and its first byte in the file, unless its checksum matches.
void expect_record(const DiskRows::Row&, std::span<const std::byte> record, int64_t byte, const ScratchFile&);

}  // namespace hctr
