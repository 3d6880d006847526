#include "data/value_counts.h"

#include <utility>

#include "base/random.h"

namespace hctr {

size_t ValueCounts::find(uint64_t code) const {
  const size_t mask = entries_.size() - 1;
  size_t at = mix64(code) & mask;
  while (entries_[at].count != 0 && entries_[at].code != code) at = (at + 1) & mask;
  return at;
}

void ValueCounts::add(uint64_t code) {
  Entry& entry = entries_[find(code)];
  if (entry.count >= enough_) return;
  entry.code = code;
  if (entry.count++ == 0 && 2 * ++used_ > static_cast<int64_t>(entries_.size())) grow();
}

bool ValueCounts::frequent(uint64_t code) const { return entries_[find(code)].count >= enough_; }

void ValueCounts::grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& entry : old)
    if (entry.count != 0) entries_[find(entry.code)] = entry;
}

}  // namespace hctr
