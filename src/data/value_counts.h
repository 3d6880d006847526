// How often each value of each column occurs, exactly: what tells rare values from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hctr {

/// Counts of 64-bit codes, up to `enough`. Open addressing; 16 bytes for each distinct code, at most half full.
class ValueCounts {
 public:
  explicit ValueCounts(uint32_t enough) : enough_(enough) {}

  void add(uint64_t code);
  /// Whether the code was added at least `enough` times.
  bool frequent(uint64_t code) const;
  int64_t distinct() const { return used_; }

 private:
  struct Entry {
    uint64_t code = 0;
    uint32_t count = 0;  // 0: the entry is free
  };
  size_t find(uint64_t code) const;
  void grow();

  uint32_t enough_;
  int64_t used_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(1024);
};

}  // namespace hctr
