#include "store/pending_rows.h"

#include <algorithm>
#include <bit>

namespace hctr {

size_t PendingRows::Slot::find(int64_t key) const {
  size_t at = (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u) >> shift;
  while (heads[at] != 0 && key_at(heads[at]) != key) at = (at + 1) & (heads.size() - 1);
  return at;
}

/// If a key is both removed and changed, the key keeps its new row. If a key has several rows, the last one is used.
PendingRows::PendingRows(const ChangesOfTable& changes, int64_t dim) : dim_(dim) {
  for (const auto& [number, of_slot] : changes) {
    const size_t places = std::bit_ceil(2 * (of_slot.keys.size() + of_slot.removed.size()) + 2);
    Slot& slot = slots_[number];
    slot.changes = &of_slot;
    slot.shift = 64 - std::countr_zero(places);
    slot.heads.assign(places, 0);
    for (size_t i = 0; i < of_slot.keys.size(); ++i)
      slot.heads[slot.find(of_slot.keys[i])] = static_cast<int64_t>(i) + 1;
    for (size_t i = 0; i < of_slot.removed.size(); ++i)
      if (int64_t& head = slot.heads[slot.find(of_slot.removed[i])]; head == 0) head = -static_cast<int64_t>(i) - 1;
  }
}

int64_t PendingRows::get(int32_t number, KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) const {
  const auto at = slots_.find(number);
  if (at == slots_.end()) return 0;
  const Slot& slot = at->second;
  int64_t hits = 0;
  for (size_t i = 0; i < wanted.keys.size(); ++i) {
    if (found[i]) continue;
    const int64_t head = slot.heads[slot.find(wanted.keys[i])];
    if (head == 0) continue;
    found[i] = head > 0 ? kFound : kRemoved;
    if (head < 0) continue;
    const int64_t place = wanted.places ? wanted.places[i] : static_cast<int64_t>(i);
    std::copy_n(slot.changes->rows.data() + (head - 1) * dim_, dim_, rows + place * stride);
    ++hits;
  }
  return hits;
}

}  // namespace hctr
