#include "store/pending_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/prefetch.h"

namespace hctr {

size_t PendingRows::Slot::find(int64_t key, size_t at) const {
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
    for (size_t i = 0; i < of_slot.keys.size(); ++i) {
      int64_t& head = slot.heads[slot.find(of_slot.keys[i])];
      duplicates_ |= head != 0;
      head = static_cast<int64_t>(i) + 1;
    }
    for (size_t i = 0; i < of_slot.removed.size(); ++i) {
      int64_t& head = slot.heads[slot.find(of_slot.removed[i])];
      duplicates_ |= head != 0;
      if (head == 0) head = -static_cast<int64_t>(i) - 1;
    }
  }
}

void PendingRows::remove_duplicates_from(ChangesOfTable& changes) const {
  ChangesOfTable all;
  for (const auto& [number, slot] : slots_) {
    ChangedRows& to = all[number];
    for (size_t i = 0; i < slot.changes->keys.size(); ++i) {
      const int64_t key = slot.changes->keys[i];
      if (slot.heads[slot.find(key)] != static_cast<int64_t>(i) + 1) continue;
      to.keys.push_back(key);
      const auto row = slot.changes->rows.begin() + static_cast<ptrdiff_t>(i) * dim_;
      to.rows.insert(to.rows.end(), row, row + dim_);
    }
    for (size_t i = 0; i < slot.changes->removed.size(); ++i) {
      const int64_t key = slot.changes->removed[i];
      if (slot.heads[slot.find(key)] == -static_cast<int64_t>(i) - 1) to.removed.push_back(key);
    }
  }
  changes = std::move(all);
}

int64_t PendingRows::get(int32_t number, KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) const {
  const auto of_slot = slots_.find(number);
  if (of_slot == slots_.end()) return 0;
  const Slot& slot = of_slot->second;
  int64_t hits = 0;
  constexpr size_t kAhead = 16;  // keys looked up together, so that their memory accesses overlap
  size_t firsts[kAhead];
  int64_t heads[kAhead];
  for (size_t begin = 0; begin < wanted.keys.size(); begin += kAhead) {
    const size_t some = std::min(kAhead, wanted.keys.size() - begin);
    for (size_t i = 0; i < some; ++i) {
      firsts[i] = slot.first(wanted.keys[begin + i]);
      prefetch(&slot.heads[firsts[i]]);
    }
    for (size_t i = 0; i < some; ++i) {
      heads[i] = found[begin + i] ? 0 : slot.heads[slot.find(wanted.keys[begin + i], firsts[i])];
      if (heads[i] > 0)
        prefetch(slot.changes->rows.data() + (heads[i] - 1) * dim_, static_cast<size_t>(dim_) * sizeof(float));
    }
    for (size_t i = 0; i < some; ++i) {
      if (heads[i] == 0) continue;
      const size_t at = begin + i;
      found[at] = heads[i] > 0 ? kFound : kRemoved;
      if (heads[i] < 0) continue;
      const int64_t place = wanted.places ? wanted.places[at] : static_cast<int64_t>(at);
      std::copy_n(slot.changes->rows.data() + (heads[i] - 1) * dim_, dim_, rows + place * stride);
      ++hits;
    }
  }
  return hits;
}

}  // namespace hctr
