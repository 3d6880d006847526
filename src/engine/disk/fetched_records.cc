#include "engine/disk/fetched_records.h"

#include <utility>

namespace hctr {

void FetchedRecords::grow(int64_t records) {
  const int64_t more = records - room();
  if (more <= 0) return;
  pieces_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(more) * record_bytes_));
  for (size_t i = 0; i < static_cast<size_t>(more); ++i) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.push_back({.memory = pieces_.back().get() + i * record_bytes_});
  }
}

uint32_t FetchedRecords::reserve(uint32_t place) {
  if (free_.empty()) drop_old();
  if (free_.empty()) return kNone;
  const uint32_t number = free_.back();
  free_.pop_back();
  Slot& slot = slots_[number];
  slot.place = place;
  slot.batch = batch_;
  slot.ready = slot.dropped = false;
  at_[place] = number;
  return number;
}

void FetchedRecords::publish(uint32_t number, bool good) {
  Slot& slot = slots_[number];
  slot.ready = true;
  if (slot.dropped)
    release(number);
  else if (!good)
    drop(slot.place);
}

uint32_t FetchedRecords::take(uint32_t place) {
  const auto found = at_.find(place);
  if (found == at_.end() || !slots_[found->second].ready) return kNone;
  const uint32_t number = found->second;
  at_.erase(found);
  return number;
}

void FetchedRecords::drop(uint32_t place) {
  const auto found = at_.find(place);
  if (found == at_.end()) return;
  Slot& slot = slots_[found->second];
  slot.dropped = true;
  // If the record is still being read, publish() will release its slot.
  if (slot.ready) release(found->second);
  at_.erase(found);
}

void FetchedRecords::drop_old() {
  if (emptied_ == batch_) return;
  emptied_ = batch_;
  std::erase_if(at_, [&](const auto& entry) {
    const Slot& slot = slots_[entry.second];
    const bool old = slot.ready && batch_ - slot.batch >= kOldBatches;
    if (old) release(entry.second);
    return old;
  });
}

}  // namespace hctr
