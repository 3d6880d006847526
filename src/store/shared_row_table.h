// A table of rows in shared memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "store/level.h"
#include "store/read_copies.h"
#include "store/shared_segment.h"

namespace hctr {

/// Rows are in blocks of a few hundred rows; the upper bits of a hash of the key select the block. A block contains the
/// sorted hashes and the rows in the same order, without free slots; the hash is invertible and replaces the key. A
/// block does not change after it is written: an update writes new blocks. The directory contains the number of the
/// commit that made it, and the offset of each block.
///
/// get() reads the last commit. The writer collects changes in its own memory. Once the changes exceed an eighth of the
/// table, it writes new blocks.
class SharedRowTable : public LevelTable {
 public:
  /// The facts about a table that a commit stores.
  struct Stored {
    int64_t dim = 0, rows = 0;
    uint64_t blocks = 0, directory = 0;  ///< number of blocks, a power of two; offset of the directory
  };
  /// A new table, for the writer.
  SharedRowTable(std::shared_ptr<SharedSegment>, int64_t dim, int64_t expected);
  /// A table of a commit. `before`: the table at an earlier commit, or null. Errors: Error(data).
  SharedRowTable(std::shared_ptr<const SharedSegment::Pin>, const Stored&, const SharedRowTable* before);

  int64_t dim() const override { return dim_; }
  int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) override;
  bool contains(int64_t key) override;
  void put(std::span<const int64_t> keys, const float* rows) override;
  void remove(std::span<const int64_t> keys) override;
  int64_t size() const override;
  void each(const RowSink&) override;
  LevelStatistics statistics() const override;
  void differences(LevelTable& before, const RowSink& changed, std::vector<int64_t>& removed) override;

  // For the writer's level.
  /// Writes all changes to the segment. `replaced` receives the memory that the commit no longer uses.
  Stored prepare(std::vector<SharedSegment::Range>& replaced);
  /// Call after publish(). Look-ups then read this commit.
  void committed(std::shared_ptr<const SharedSegment::Pin>);
  void roll_back();
  bool fresh() const { return fresh_; }  ///< no commit contains the table
  /// The memory of the last commit.
  std::vector<SharedSegment::Range> used() const;

  /// Bytes of a table of `rows` rows in the segment.
  static int64_t expected_bytes(int64_t dim, int64_t rows);

 private:
  using Directory = std::vector<uint64_t>;
  struct Snapshot {
    std::shared_ptr<const SharedSegment::Pin> pin{};
    std::shared_ptr<const Directory> blocks{};
    int64_t rows = 0;
  };
  static constexpr uint64_t kHeaderBytes = 16;  // number of rows, and the first commit with the block
  struct Block;
  struct Change;
  struct NewBlocks;
  Block block_at(uint64_t offset) const;
  uint64_t block_bytes(uint64_t rows) const { return kHeaderBytes + rows * (8 + 4 * static_cast<uint64_t>(dim_)); }
  uint64_t allocate(uint64_t bytes);
  void release(uint64_t offset);
  uint64_t directory_bytes() const { return (1 + stored_.blocks) * sizeof(uint64_t); }
  void write_changes();
  int64_t show_new();
  SharedSegment::Range directory_range() const;
  std::vector<Change> sorted_changes() const;
  void merge(uint64_t before, std::span<const Change>, NewBlocks&);
  std::shared_ptr<const Snapshot> snapshot() const;

  std::shared_ptr<SharedSegment> segment_;
  int64_t dim_;
  ReadCopies<std::shared_ptr<const Snapshot>> current_;
  std::atomic<int64_t> asked_{0}, found_{0};

  mutable std::mutex changing_;  // guards the members below
  std::atomic<bool> fresh_{true};
  Stored stored_{}, prepared_{};  // stored_: the last commit; prepared_: the next commit
  Directory blocks_;              // the directory, including all changes that are written
  int64_t rows_ = 0;
  std::vector<int64_t> changed_keys_;
  std::vector<int64_t> row_of_change_;  // index in changed_rows_; -1: removed
  std::vector<float> changed_rows_;
  std::map<uint64_t, uint64_t> made_;           // [offset] bytes of memory allocated since the last commit
  std::vector<SharedSegment::Range> replaced_;  // memory of the last commit that the next commit no longer uses
};

}  // namespace hctr
