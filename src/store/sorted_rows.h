// Sorts rows by the bytes of their keys, for files that need this order. Rows may exceed memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/scratch_file.h"
#include "core/base/thread_pool.h"
#include "store/block_writer.h"

namespace hctr {

/// A number that orders keys by their bytes in memory, first byte first, as databases do.
inline uint64_t byte_order_of(int64_t key) { return __builtin_bswap64(static_cast<uint64_t>(key)); }

/// Sorts parts of the rows in memory, as sorted runs. Beyond `memory_bytes`, writes the runs to an unnamed file. Then
/// merges the runs while reading (D. E. Knuth, The Art of Computer Programming, volume 3, 5.4.1). Not thread-safe.
class SortedRows {
 public:
  class Range;
  SortedRows(fs::path folder, int64_t dim, int64_t memory_bytes);
  ~SortedRows();
  /// The threads sort and write runs.
  void add(std::span<const int64_t> keys, const float* rows, ThreadPool& threads);

  /// Ends adding. Divides the rows into at most `most` ranges of about the same size. All keys of a range come before
  /// those of the next range. This object must outlive the ranges. Different threads may read different ranges.
  std::vector<Range> finish(int64_t most, ThreadPool& threads);

 private:
  /// A row in memory.
  struct Place {
    uint64_t order;
    uint32_t at;
  };
  struct Run {
    std::vector<Place> places{};     // the rows of a run in memory
    int64_t begin = 0, records = 0;  // for a run in the file: byte offset and number of records
    std::vector<uint64_t> samples{};
  };
  int64_t record_bytes() const { return 8 + dim_ * static_cast<int64_t>(sizeof(float)); }
  int64_t record_begin(const Run& run, int64_t record) const { return run.begin + record * record_bytes(); }
  /// The parts of the rows in memory, sorted. Keeps the last of several rows with the same key.
  std::vector<Run> sorted_runs(ThreadPool&) const;
  Run sorted(size_t first, size_t last) const;
  void write_runs(ThreadPool&);
  void write_run(Run&, int64_t begin) const;
  uint64_t order_at(const Run&, int64_t record) const;
  int64_t records_before(const Run&, uint64_t order) const;

  fs::path folder_;
  int64_t dim_;
  size_t most_rows_;
  std::vector<int64_t> keys_;
  std::vector<float> rows_;
  std::unique_ptr<ScratchFile> file_{};
  std::unique_ptr<BlockWriter> writer_{};
  int64_t file_bytes_ = 0;
  std::vector<Run> runs_;
};

/// Rows in ascending order of their keys' bytes. Each key comes once, with the row that was added last.
class SortedRows::Range {
 public:
  Range(const SortedRows& of, size_t buffer_bytes);
  /// Adds the records [first, last) of a run.
  void add(size_t run, int64_t first, int64_t last);
  /// Returns false at the end. The row is valid until the next call.
  bool next(int64_t& key, const float*& row);

 private:
  /// The records of a run that were not read yet.
  struct Cursor {
    size_t run;
    int64_t at, end;
    std::vector<std::byte> buffer{};  // for a run in the file: the records before `at` that were read last
    size_t used = 0;
  };
  struct Head {
    uint64_t order;
    size_t cursor;
    const std::byte* row;
  };
  void push(size_t cursor);
  static bool later(const Head& a, const Head& b) {
    return a.order != b.order ? a.order > b.order : a.cursor < b.cursor;
  }
  const SortedRows* of_;
  size_t buffer_bytes_;
  std::vector<Cursor> cursors_{};  // in the order in which the runs were added
  std::vector<Head> heads_{};  // a heap; the top has the smallest key, and of equal keys the row that was added last
  std::vector<float> row_;
};

}  // namespace hctr
