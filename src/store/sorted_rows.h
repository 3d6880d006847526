// Rows in the order of their keys' bytes, for files that need them so; also more than memory has room for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/scratch_file.h"

namespace hctr {

/// The order in which databases keep keys: that of their bytes in memory, the first byte before the others.
inline uint64_t byte_order_of(int64_t key) { return __builtin_bswap64(static_cast<uint64_t>(key)); }

/// Sorts in memory, and beyond `memory_bytes` in runs of a file without a name, which are merged when they are read
/// (D. E. Knuth, The Art of Computer Programming, volume 3, 5.4.1). One thread.
class SortedRows {
 public:
  SortedRows(fs::path folder, int64_t dim, int64_t memory_bytes);
  void add(std::span<const int64_t> keys, const float* rows);

  /// Calls from here on pass each key once, with the row that was added last.
  void finish();
  /// False at the end. The row is valid until the next call.
  bool next(int64_t& key, const float*& row);

 private:
  struct Run {
    int64_t at, end;                  // bytes in the file, not yet in the buffer
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
  std::vector<uint32_t> order_;  // of rows in memory, where no run was written
  size_t at_ = 0;
  std::vector<float> row_;
};

}  // namespace hctr
