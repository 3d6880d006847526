#include "prepare/code_counts.h"

#include <utility>

#include "core/base/prefetch.h"
#include "core/base/random.h"

namespace hctr {

size_t CodeCounts::place(uint64_t code) const {
  const size_t mask = entries_.size() - 1;
  size_t at = mix64(code) & mask;
  while (entries_[at].count != 0 && entries_[at].code != code) at = (at + 1) & mask;
  return at;
}

void CodeCounts::add(uint64_t code, uint64_t times) {
  Entry& entry = entries_[place(code)];
  const bool fresh = entry.count == 0;
  entry.code = code;
  entry.count += times;
  if (fresh && 3 * ++used_ > 2 * entries_.size()) grow();
}

void CodeCounts::add(std::span<const uint64_t> codes) {
  constexpr size_t kAhead = 12;  // prefetches this many entries ahead if the table exceeds the cache
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i + kAhead < codes.size()) prefetch(&entries_[mix64(codes[i + kAhead]) & (entries_.size() - 1)]);
    add(codes[i]);
  }
}

void CodeCounts::merge(CodeCounts& other) {
  if (other.entries_.size() > entries_.size()) std::swap(*this, other);
  other.for_each([this](uint64_t code, uint64_t count) { add(code, count); });
  other = CodeCounts();
}

void CodeCounts::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old)
    if (entry.count != 0) entries_[place(entry.code)] = entry;
}

}  // namespace hctr
