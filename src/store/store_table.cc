#include "store/store_table.h"

#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "store/unique_keys.h"

namespace hctr {

StoreTable::About StoreTable::about() const {
  const std::shared_lock lock(slots_);
  return about_;
}

std::shared_ptr<const StoreTable::Tables> StoreTable::find(int32_t slot) const {
  const std::shared_lock lock(slots_);
  const auto found = spaces_.find(about_.by_slot ? slot : 0);
  return found == spaces_.end() ? nullptr : found->second.levels;
}

int64_t StoreTable::get(int32_t slot, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found) {
  thread_local UniqueKeys unique;
  thread_local std::vector<uint8_t> hit, before;
  const uint64_t updates = updates_.load();
  unique.set(keys);
  const size_t count = unique.keys.size();
  hit.assign(count, 0);
  auto missing = static_cast<int64_t>(count);
  if (const auto tables = find(slot))
    for (size_t l = 0; l < levels_.size() && missing > 0; ++l) {
      const bool offers = l > 0 && !tables->front()->complete();
      if (offers) before = hit;
      const int64_t hits = (*tables)[l]->get({unique.keys, unique.places.data()}, rows, stride, hit.data());
      missing -= hits;
      if (!offers || hits == 0) continue;
      std::vector<int64_t> keys_there;
      std::vector<int32_t> places;
      for (size_t i = 0; i < count; ++i)
        if (hit[i] && !before[i]) {
          keys_there.push_back(unique.keys[i]);
          places.push_back(unique.places[i]);
        }
      offer(*tables, l, keys_there, places, rows, stride, updates);
    }
  for (size_t i = 0; i < count; ++i) {
    found[unique.places[i]] = hit[i];
    if (!hit[i]) std::fill_n(rows + unique.places[i] * stride, about_.dim, about_.default_value);
  }
  for (const auto& [place, first] : unique.duplicates) {
    std::memcpy(rows + place * stride, rows + first * stride, static_cast<size_t>(about_.dim) * sizeof(float));
    found[place] = found[first];
  }
  asked_.fetch_add(static_cast<int64_t>(keys.size()), std::memory_order_relaxed);
  unique_.fetch_add(static_cast<int64_t>(count), std::memory_order_relaxed);
  if (missing > 0) defaults_.fetch_add(missing, std::memory_order_relaxed);
  return missing;
}

/// Rows that an update has replaced since must not reappear.
void StoreTable::offer(const Tables& tables, size_t answered_by, std::span<const int64_t> keys,
                       std::span<const int32_t> places, const float* rows, int64_t stride, uint64_t updates) {
  const std::unique_lock lock(changing_, std::try_to_lock);
  if (!lock || updates % 2 != 0 || updates_.load() != updates) return;
  for (size_t l = 0; l < answered_by; ++l)
    for (size_t i = 0; i < keys.size(); ++i) tables[l]->offer(keys.subspan(i, 1), rows + places[i] * stride);
}

bool StoreTable::contains(int32_t slot, int64_t key) const {
  const auto tables = find(slot);
  return tables && tables->back()->contains(key);
}

int64_t StoreTable::rows() const {
  const std::shared_lock lock(slots_);
  int64_t rows = 0;
  for (const auto& [slot, space] : spaces_) rows += space.levels->back()->size();
  return rows;
}

std::vector<std::pair<int32_t, std::string>> StoreTable::spaces() const {
  const std::shared_lock lock(slots_);
  std::vector<std::pair<int32_t, std::string>> all;
  for (const auto& [slot, space] : spaces_) all.emplace_back(slot, space.name);
  return all;
}

void StoreTable::each(
    const std::function<void(int32_t, std::span<const int64_t>, std::span<const float>)>& sink) const {
  for (const auto& [slot, name] : spaces())
    find(slot)->back()->each(
        [&, at = slot](std::span<const int64_t> keys, std::span<const float> rows) { sink(at, keys, rows); });
}

StoreTableStatistics StoreTable::statistics() const {
  StoreTableStatistics all{.table = about_.name,
                           .rows = rows(),
                           .asked = asked_.load(),
                           .unique = unique_.load(),
                           .defaults = defaults_.load()};
  const std::shared_lock lock(slots_);
  for (size_t l = 0; l < levels_.size(); ++l) {
    StoreTableStatistics::Level sum{.name = levels_[l]->name()};
    for (const auto& [slot, space] : spaces_) {
      const LevelStatistics one = (*space.levels)[l]->statistics();
      sum.rows += one.rows, sum.bytes += one.bytes, sum.asked += one.asked, sum.found += one.found;
    }
    all.levels.push_back(std::move(sum));
  }
  return all;
}

StoreTable::Tables StoreTable::open_levels(const std::string& space, int64_t expected) const {
  Tables tables;
  for (StoreLevel* const level : levels_) tables.push_back(level->table(space, about_.dim, expected));
  return tables;
}

void StoreTable::open(int32_t slot, int64_t expected) {
  if (find(slot)) return;
  Space space{about_.by_slot ? cat(about_.space, "/", slot) : about_.space, nullptr};
  space.levels = std::make_shared<const Tables>(open_levels(space.name, expected));
  const std::unique_lock lock(slots_);
  spaces_.emplace(about_.by_slot ? slot : 0, std::move(space));
}

void StoreTable::begin_update() {
  changing_.lock();
  updates_.fetch_add(1);
  const std::unique_lock lock(slots_);
  about_.content.clear();
}

void StoreTable::end_update() {
  updates_.fetch_add(1);
  changing_.unlock();
}

void StoreTable::fill(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows) {
  (*find(slot))[level]->put(keys, rows);
}

void StoreTable::put(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows) {
  open(slot, static_cast<int64_t>(keys.size()));
  LevelTable& table = *(*find(slot))[level];
  if (table.complete()) return table.put(keys, rows);
  for (size_t i = 0; i < keys.size(); ++i)
    if (table.contains(keys[i])) table.put(keys.subspan(i, 1), rows + static_cast<int64_t>(i) * about_.dim);
}

void StoreTable::remove(size_t level, int32_t slot, std::span<const int64_t> keys) {
  if (const auto tables = find(slot)) (*tables)[level]->remove(keys);
}

void StoreTable::warm() {
  for (const auto& [slot, name] : spaces()) {
    const auto tables = find(slot);
    tables->back()->each([&](std::span<const int64_t> keys, std::span<const float> rows) {
      for (size_t l = 0; l + 1 < levels_.size(); ++l) (*tables)[l]->put(keys, rows.data());
    });
  }
}

void StoreTable::reopen() {
  const std::unique_lock lock(slots_);
  for (auto& [slot, space] : spaces_) space.levels = std::make_shared<const Tables>(open_levels(space.name, 0));
}

void StoreTable::drop() {
  for (const auto& [slot, name] : spaces())
    for (StoreLevel* const level : levels_) level->drop(name);
}

}  // namespace hctr
