// Rows of one table in a file of fixed-size records with checksums, and an index in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/files.h"
#include "store/level.h"

namespace hctr {

/// A record has the key (8 bytes), its commit number (8), dim floats and a checksum (4). A record without a valid
/// checksum is free. Committed records are not overwritten: a changed row is written to another record, and the old
/// record is cleared once the commit is on disk. A killed process therefore leaves the rows of the last commit, whose
/// number is in FileLevel's catalog.
///
/// The index needs at most 16 / 0.83 bytes per row. Any thread may call get() at any time. Only one thread at a time
/// may call the other members.
class RowFile : public LevelTable {
 public:
  /// Opens the file as of commit `committed`, or creates it if `rows` is none. `rows`: the number of rows at that
  /// commit. Errors: Error(io); Error(data) with the name of a file that is damaged or belongs to another table.
  RowFile(fs::path, int64_t dim, int64_t expected, uint64_t committed, std::optional<int64_t> rows);
  ~RowFile() override;

  /// The size of a record, and of a file with `rows` records, in bytes.
  static int64_t record_bytes(int64_t dim) { return (20 + 4 * dim + 7) / 8 * 8; }
  static int64_t expected_bytes(int64_t dim, int64_t rows) { return kHead + rows * record_bytes(dim); }

  int64_t dim() const override { return dim_; }
  int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) override;
  bool contains(int64_t key) override { return index_.contains(key); }
  void put(std::span<const int64_t> keys, const float* rows) override;
  /// Until the table is committed, background threads write the rows to the file. Other calls wait for these writes.
  void put_all(std::span<const int64_t> keys, const float* rows, ThreadPool&) override;
  void remove(std::span<const int64_t> keys) override;
  int64_t size() const override { return index_.size(); }
  void each(const RowSink&) override;
  LevelStatistics statistics() const override;

  const fs::path& path() const { return path_; }
  /// The number of rows after the next commit.
  int64_t size_of_next() const;
  uint64_t committed() const { return committed_.load(); }  ///< the last commit that contains the table
  bool fresh() const { return fresh_.load(); }              ///< whether no commit contains the table yet
  bool changed() const { return !pending_.empty() || fresh_.load(); }
  // A commit has three calls. sync() writes new records to disk. publish() makes the new records current, once the
  // catalog contains the commit. clear_replaced() clears replaced records.
  void sync();
  void publish();
  void clear_replaced();
  /// Reverts changes since the last commit.
  void roll_back();
  /// Errors: Error(data) with the first damaged record.
  void verify();
  /// The number of free records.
  int64_t free_records() const { return static_cast<int64_t>(free_.size()); }

 private:
  struct Record;
  struct Load;
  int64_t offset(int64_t record) const { return kHead + record * bytes_; }
  static constexpr int64_t kHead = 4096, kGone = -1, kRecordsAtOnce = 4096;
  bool decode(std::span<const std::byte> record, Record&) const;
  void read(int64_t record, std::span<std::byte> to) const;
  void write(int64_t first, std::span<const std::byte> records);
  void encode(int64_t key, uint64_t commit, const float* row, std::byte* to) const;
  void clear(const std::vector<int64_t>& records);
  void write_head();
  void read_head();
  void scan();
  /// `keys`: at most 256 keys.
  void prefetch_index(std::span<const int64_t> keys) const;
  void put_index(int64_t key, int64_t record);
  std::optional<int64_t> record_of(int64_t key) const;
  bool read_row(int64_t key, std::span<std::byte> buffer, float* to) const;
  std::vector<int64_t> take_records(size_t count);
  Load& begin_load();
  /// Waits until all rows of put_all() are in the file.
  void finish_load() const;

  fs::path path_;
  int64_t dim_, bytes_;
  int descriptor_ = -1;
  ConcurrentRows index_;  // [key] record number
  std::atomic<uint64_t> committed_;
  // Whether no commit contains the table; its rows are then added to the index immediately.
  std::atomic<bool> fresh_ = false;
  std::atomic<int64_t> records_ = 0;
  std::vector<int64_t> free_;
  std::unordered_map<int64_t, int64_t> pending_;  // [key] the key's new record, or kGone
  std::vector<int64_t> removals_, replaced_;      // records that mark removed keys; records to clear
  int64_t expected_;
  mutable std::mutex loading_;  // guards load_
  std::unique_ptr<Load> load_;
  std::atomic<int64_t> asked_{0}, found_{0};
};

}  // namespace hctr
