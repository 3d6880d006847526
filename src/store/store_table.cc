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

int64_t StoreTable::find_rows(int32_t slot, KeysToFind wanted, float* rows, int64_t stride, uint8_t* hit,
                              const PendingRows* pending, size_t asked) {
  thread_local std::vector<uint8_t> before;
  thread_local std::vector<int64_t> offered_keys;
  thread_local std::vector<float> offered_rows;
  const uint64_t updates = updates_.load();
  const size_t count = wanted.keys.size();
  std::fill_n(hit, count, uint8_t{0});
  if (pending) pending->get(slot, wanted, rows, stride, hit);
  const auto all_known = [&] { return std::find(hit, hit + count, uint8_t{0}) == hit + count; };
  if (const auto tables = find(slot))
    for (size_t l = 0; l < levels_.size() && !all_known(); ++l) {
      const bool offers = std::any_of(tables->begin(), tables->begin() + static_cast<ptrdiff_t>(l),
                                      [](const auto& above) { return !above->complete(); });
      if (offers) before.assign(hit, hit + count);
      const int64_t hits = (*tables)[l]->get(wanted, rows, stride, hit);
      if (!offers || hits == 0) continue;
      offered_keys.clear();
      offered_rows.clear();
      for (size_t i = 0; i < count; ++i)
        if (hit[i] && !before[i]) {
          const float* const row = rows + (wanted.places ? wanted.places[i] : static_cast<int32_t>(i)) * stride;
          offered_keys.push_back(wanted.keys[i]);
          offered_rows.insert(offered_rows.end(), row, row + about_.dim);
        }
      offer(*tables, l, offered_keys, offered_rows.data(), updates);
    }
  int64_t missing = 0;
  for (size_t i = 0; i < count; ++i) {
    if (hit[i] == PendingRows::kRemoved) hit[i] = 0;
    missing += hit[i] == 0;
  }
  asked_.fetch_add(static_cast<int64_t>(asked), std::memory_order_relaxed);
  unique_.fetch_add(static_cast<int64_t>(count), std::memory_order_relaxed);
  if (missing > 0) defaults_.fetch_add(missing, std::memory_order_relaxed);
  return missing;
}

int64_t StoreTable::get(int32_t slot, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found,
                        const PendingRows* pending) {
  thread_local UniqueKeys unique;
  thread_local std::vector<uint8_t> hit;
  unique.set(keys);
  hit.resize(unique.keys.size());
  const int64_t missing =
      find_rows(slot, {unique.keys, unique.places.data()}, rows, stride, hit.data(), pending, keys.size());
  for (size_t i = 0; i < unique.keys.size(); ++i) {
    found[unique.places[i]] = hit[i];
    if (!hit[i]) std::fill_n(rows + unique.places[i] * stride, about_.dim, about_.default_value);
  }
  for (const auto& [place, first] : unique.duplicates) {
    std::memcpy(rows + place * stride, rows + first * stride, static_cast<size_t>(about_.dim) * sizeof(float));
    found[place] = found[first];
  }
  return missing;
}

int64_t StoreTable::get_rows(int32_t slot, std::span<const int64_t> keys, std::vector<float>& rows, int32_t* row_of,
                             const PendingRows* pending) {
  thread_local UniqueKeys unique;
  thread_local std::vector<uint8_t> hit;
  unique.set(keys);
  hit.resize(unique.keys.size());
  const auto dim = static_cast<size_t>(about_.dim);
  const size_t first = rows.size() / dim;
  HCTR_EXPECT(first > 0, "expected a first row, which stands for missing keys");
  rows.resize((first + unique.keys.size()) * dim);
  const int64_t missing =
      find_rows(slot, {unique.keys}, rows.data() + first * dim, about_.dim, hit.data(), pending, keys.size());
  for (size_t i = 0; i < unique.keys.size(); ++i)
    row_of[unique.places[i]] = hit[i] ? static_cast<int32_t>(first + i) : 0;
  for (const auto& [place, first_place] : unique.duplicates) row_of[place] = row_of[first_place];
  return missing;
}

/// Offers rows to upper levels. Does nothing if an update has begun since the look-up, because old rows must not
/// replace new rows.
void StoreTable::offer(const Tables& tables, size_t answered_by, std::span<const int64_t> keys, const float* rows,
                       uint64_t updates) {
  const std::unique_lock lock(changing_, std::try_to_lock);
  if (!lock || updates % 2 != 0 || updates_.load() != updates) return;
  for (size_t l = 0; l < answered_by; ++l) tables[l]->offer(keys, rows);
}

int64_t StoreTable::count(int32_t slot, std::span<const int64_t> keys) const {
  const auto tables = find(slot);
  return tables ? tables->back()->count(keys) : 0;
}

int64_t StoreTable::rows() const {
  const std::shared_lock lock(slots_);
  int64_t rows = 0;
  for (const auto& [slot, space] : spaces_) rows += space.levels->back()->size();
  return rows;
}

int64_t StoreTable::rows(int32_t slot) const {
  const auto tables = find(slot);
  return tables ? tables->back()->size() : 0;
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
      sum.failed += one.failed;
    }
    all.levels.push_back(std::move(sum));
  }
  return all;
}

void StoreTable::continue_statistics(const StoreTable& before) {
  asked_ = before.asked_.load(), unique_ = before.unique_.load(), defaults_ = before.defaults_.load();
}

ChangesOfTable StoreTable::changes_since(const StoreTable& before) {
  ChangesOfTable all;
  for (const auto& [slot, name] : spaces()) {
    const auto tables = find(slot);
    ChangedRows changes;
    const RowSink add = [&changes](std::span<const int64_t> keys, std::span<const float> rows) {
      changes.keys.insert(changes.keys.end(), keys.begin(), keys.end());
      changes.rows.insert(changes.rows.end(), rows.begin(), rows.end());
    };
    if (const auto then = before.find(slot))
      tables->back()->differences(*then->back(), add, changes.removed);
    else
      tables->back()->each(add);
    if (!changes.keys.empty() || !changes.removed.empty()) all[slot] = std::move(changes);
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

void StoreTable::adopt() {
  Space space{about_.space, nullptr};
  Tables tables;
  for (size_t l = 0; l < levels_.size(); ++l)
    tables.push_back(l + 1 == levels_.size() ? levels_[l]->adopt(space.name, about_.dim)
                                             : levels_[l]->table(space.name, about_.dim, 0));
  space.levels = std::make_shared<const Tables>(std::move(tables));
  {
    const std::unique_lock lock(slots_);
    spaces_.emplace(0, std::move(space));
  }
  warm();
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

void StoreTable::fill(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows,
                      ThreadPool& threads) {
  LevelTable& table = *(*find(slot))[level];
  if (level + 1 == levels_.size() || table.is_filled()) table.put_all(keys, rows, threads);
}

void StoreTable::put(size_t level, int32_t slot, std::span<const int64_t> keys, const float* rows,
                     ThreadPool& threads) {
  open(slot, static_cast<int64_t>(keys.size()));
  (*find(slot))[level]->update_all(keys, rows, threads);
}

void StoreTable::remove(size_t level, int32_t slot, std::span<const int64_t> keys) {
  if (const auto tables = find(slot)) (*tables)[level]->remove(keys);
}

void StoreTable::warm() {
  for (const auto& [slot, name] : spaces()) {
    const auto tables = find(slot);
    const auto above = std::span(*tables).first(tables->size() - 1);
    if (std::ranges::none_of(above, [](const auto& table) { return table->is_filled(); })) continue;
    tables->back()->each([&](std::span<const int64_t> keys, std::span<const float> rows) {
      for (const auto& table : above)
        if (table->is_filled()) table->put(keys, rows.data());
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
