// A snapshot of the rows on disk, for a thread that reads the rows later.
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

/// Whether a snapshot still exists. Thread-safe.
class SnapshotUse {
 public:
  void end();
  bool ended() const;
  /// Waits for the snapshot's end.
  void wait();
  /// Total seconds spent in wait().
  double waited() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  double waited_ = 0;
};

/// The rows that were on disk at the time of DiskRows::snapshot(). While this object exists, DiskRows does not
/// overwrite their records.
class DiskSnapshot {
 public:
  DiskSnapshot(std::vector<DiskRows::Row> rows, std::shared_ptr<const ScratchFile> file, std::string label,
               int64_t record_bytes, std::shared_ptr<SnapshotUse> use);
  ~DiskSnapshot();
  DiskSnapshot(const DiskSnapshot&) = delete;
  DiskSnapshot& operator=(const DiskSnapshot&) = delete;

  /// The rows in file order.
  std::span<DiskRows::Row> rows() { return rows_; }
  /// Reads the records of `rows`, a subset of rows(), to `records`. May be called by any thread, but only one at a
  /// time. Errors: those of DiskRows::read().
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

/// Checks the checksum of a record. Errors: Error(io) naming the row and its byte offset in the file on a mismatch.
void expect_record(const DiskRows::Row&, std::span<const std::byte> record, int64_t byte, const ScratchFile&);

}  // namespace hctr
