// Sorts rows by the bytes of their keys, for files that need this order. Rows may exceed memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/scratch_file.h"

namespace hctr {

/// A number that orders keys by their bytes in memory, first byte first, as databases do.
inline uint64_t byte_order_of(int64_t key) { return __builtin_bswap64(static_cast<uint64_t>(key)); }

/// Sorts in memory. Beyond `memory_bytes`, writes sorted runs to an unnamed file and merges the runs while reading (D.
/// E. Knuth, The Art of Computer Programming, volume 3, 5.4.1). Not thread-safe.
class SortedRows {
 public:
  SortedRows(fs::path folder, int64_t dim, int64_t memory_bytes);
  void add(std::span<const int64_t> keys, const float* rows);

  /// Ends adding. next() then passes each key once, with the row that was added last.
  void finish();
  /// Returns false at the end. The row is valid until the next call.
  bool next(int64_t& key, const float*& row);

 private:
  struct Run {
    int64_t at, end;                  // byte range in the file that is not in `buffer` yet
    std::vector<std::byte> buffer{};  // records
    size_t used = 0;
  };
  struct Head {
    uint64_t order;
    size_t run;
  };
  static bool later(const Head& a, const Head& b);
  int64_t record_bytes() const { return 8 + dim_ * static_cast<int64_t>(sizeof(float)); }
  std::vector<uint32_t> sorted() const;
  void write_run();
  bool fill(Run&) const;
  void push(size_t run);

  fs::path folder_;
  int64_t dim_;
  size_t most_rows_;
  std::vector<int64_t> keys_;
  std::vector<float> rows_;
  std::unique_ptr<ScratchFile> file_{};
  int64_t file_bytes_ = 0;
  std::vector<Run> runs_;
  std::vector<Head> heads_;      // a heap
  std::vector<uint32_t> order_;  // order of the rows in memory, if no run was written
  size_t at_ = 0;
  std::vector<float> row_;
};

}  // namespace hctr
