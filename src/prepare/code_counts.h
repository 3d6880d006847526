// Counts how often each value of a column occurs. Each thread has its own table. The tables are merged at the end, so
// that the counts do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hctr {

/// Counts of 64-bit codes. Open addressing, 16 bytes per entry, load factor at most 2/3.
class CodeCounts {
 public:
  struct Entry {
    uint64_t code = 0;
    uint64_t count = 0;  ///< 0: free entry
  };

  void add(uint64_t code, uint64_t times = 1);
  void add(std::span<const uint64_t> codes);
  /// Adds the counts of `other` and frees its memory.
  void merge(CodeCounts& other);

  uint64_t of(uint64_t code) const { return entries_[place(code)].count; }
  int64_t distinct() const { return static_cast<int64_t>(used_); }
  /// Calls visit(code, count) for each code, in unspecified order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_)
      if (entry.count > 0) visit(entry.code, entry.count);
  }

 private:
  size_t place(uint64_t code) const;
  void grow();

  std::vector<Entry> entries_ = std::vector<Entry>(64);
  size_t used_ = 0;
};

}  // namespace hctr
