// The expected content of a store as plain maps, and random operations on the store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hctr/store.h"

namespace hctr::test {

/// A table as a plain map from keys to stamps. The row follows from key and stamp, so a check detects torn rows, rows
/// of another key, and outdated rows.
class StampedTable {
 public:
  explicit StampedTable(int64_t dim) : dim_(dim) {}
  int64_t dim() const { return dim_; }
  size_t size() const { return stamps_.size(); }
  static void row(int64_t key, uint32_t stamp, std::span<float> to) {
    for (size_t e = 0; e < to.size(); ++e)
      to[e] = static_cast<float>((static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u >> 44) % 1000 * 1000 + e) +
              1e6f * static_cast<float>(stamp % 16);
  }
  void put(int64_t key, uint32_t stamp) { stamps_[key] = stamp; }
  void remove(int64_t key) { stamps_.erase(key); }

  StoreTableSource source(const std::string& name) const {
    return {.name = name, .dim = dim_, .rows = [copy = stamps_, dim = dim_](const StoreRowSink& sink) {
              std::vector<float> of_key(static_cast<size_t>(dim));
              for (const auto& [key, stamp] : copy) {
                row(key, stamp, of_key);
                sink({}, {&key, 1}, of_key);
              }
            }};
  }
  /// Counts keys whose row or "found" flag is wrong in a result.
  int64_t wrong(std::span<const int64_t> keys, std::span<const float> rows, std::span<const uint8_t> found) const {
    std::vector<float> wanted(static_cast<size_t>(dim_));
    int64_t wrong = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto there = stamps_.find(keys[i]);
      if (there == stamps_.end())
        std::fill(wanted.begin(), wanted.end(), 0.0f);
      else
        row(keys[i], there->second, wanted);
      wrong += (found[i] != 0) != (there != stamps_.end()) ||
               !std::equal(wanted.begin(), wanted.end(), rows.begin() + static_cast<int64_t>(i) * dim_);
    }
    return wrong;
  }

 private:
  int64_t dim_;
  std::unordered_map<int64_t, uint32_t> stamps_;
};

/// Runs random operations on a store with one model of two tables, and compares each result with plain maps.
class StoreOperations {
 public:
  /// `lasts`: whether the store has a file tier, so that verify and compact are tested, too.
  StoreOperations(Store& store, uint64_t seed, int64_t keys, bool lasts)
      : store_(store), random_(seed), keys_(keys), lasts_(lasts) {
    load();
    active_ = "0";
  }

  /// operations(): keys looked up, changed, removed or loaded so far. wrong(): wrong results so far.
  int64_t operations() const { return operations_; }
  int64_t wrong() const { return wrong_; }

  void step() {
    const uint64_t what = random_() % 400;
    if (what == 0) load();
    if (what == 1 || what == 2) swap();
    if (what == 3) unload();
    if (what == 4 && lasts_) {
      store_.compact();
      store_.verify();
    }
    if (what < 60) return update();
    look_up();
  }

 private:
  using Tables = std::vector<StampedTable>;

  int64_t any_key() { return static_cast<int64_t>(random_() % static_cast<uint64_t>(keys_)) - keys_ / 3; }
  void load() {
    const std::string version = std::to_string(next_++);
    Tables& tables = versions_.emplace(version, Tables{StampedTable(8), StampedTable(3)}).first->second;
    for (StampedTable& table : tables)
      for (int64_t i = 0; i < keys_ / 2; ++i) table.put(any_key(), static_cast<uint32_t>(random_()));
    operations_ += static_cast<int64_t>(tables[0].size() + tables[1].size());
    store_.load({.name = "m", .version = version, .tables = {tables[0].source("a"), tables[1].source("b")}});
    iterations_[version] = -1;
  }
  void swap() {
    auto chosen = versions_.begin();
    std::advance(chosen, static_cast<ptrdiff_t>(random_() % versions_.size()));
    active_ = chosen->first;
    store_.activate("m", active_);
  }
  void unload() {
    if (versions_.size() < 2) return;
    const std::string gone = versions_.begin()->first == active_ ? versions_.rbegin()->first : versions_.begin()->first;
    store_.unload("m", gone);
    versions_.erase(gone);
  }
  void update() {
    std::vector<int64_t> keys[2], removed[2];
    std::vector<float> rows[2];
    StoreTableUpdate updates[2];
    for (size_t t = 0; t < 2; ++t) {
      StampedTable& table = versions_.at(active_)[t];
      const auto count = static_cast<size_t>(random_() % 500);
      for (size_t i = 0; i < count; ++i) {
        const int64_t key = any_key();
        if (random_() % 4 == 0) {
          removed[t].push_back(key);
          continue;
        }
        keys[t].push_back(key);
        rows[t].resize(rows[t].size() + static_cast<size_t>(table.dim()));
        const auto stamp = static_cast<uint32_t>(random_());
        StampedTable::row(key, stamp, std::span(rows[t]).last(static_cast<size_t>(table.dim())));
      }
      operations_ += static_cast<int64_t>(count);
      updates[t] = {.table = t == 0 ? "a" : "b", .keys = keys[t], .rows = rows[t].data(), .removed = removed[t]};
    }
    wrong_ += !store_.apply("m", ++iterations_[active_], updates);
    // If a key occurs several times, its last row is kept. If a key is both removed and set, it ends up with the row.
    for (size_t t = 0; t < 2; ++t) note(versions_.at(active_)[t], keys[t], removed[t], rows[t]);
  }
  static void note(StampedTable& table, const std::vector<int64_t>& keys, const std::vector<int64_t>& removed,
                   const std::vector<float>& rows) {
    for (const int64_t key : removed) table.remove(key);
    for (size_t i = 0; i < keys.size(); ++i)
      table.put(keys[i], static_cast<uint32_t>(rows[i * static_cast<size_t>(table.dim())] / 1e6f));
  }
  void look_up() {
    const size_t t = random_() % 2;
    const StampedTable& table = versions_.at(active_)[t];
    std::vector<int64_t> keys(static_cast<size_t>(random_() % 2000));
    for (int64_t& key : keys) key = random_() % 4 == 0 && key != 0 ? keys.front() : any_key();
    std::vector<float> rows(keys.size() * static_cast<size_t>(table.dim()));
    std::vector<uint8_t> found(keys.size());
    store_.view("m").get(t, keys, rows.data(), 0, found.data());
    wrong_ += table.wrong(keys, rows, found);
    operations_ += static_cast<int64_t>(keys.size());
  }

  Store& store_;
  std::mt19937_64 random_;
  int64_t keys_;
  bool lasts_;
  std::map<std::string, Tables> versions_;
  std::map<std::string, int64_t> iterations_;
  std::string active_;
  int64_t next_ = 0, operations_ = 0, wrong_ = 0;
};

}  // namespace hctr::test
