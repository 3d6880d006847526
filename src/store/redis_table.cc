#include "store/redis_table.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <utility>

#include "core/base/expect.h"
#include "store/table_names.h"

namespace hctr {
namespace {

std::string drawn_number() {
  std::random_device random;
  char text[24];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

}  // namespace

RedisTable::RedisTable(const RedisShared& shared, std::string name, int64_t dim, int64_t partitions)
    : shared_(shared),
      name_(std::move(name)),
      dim_(dim),
      row_bytes_(dim * static_cast<int64_t>(sizeof(float))),
      partitions_(partitions),
      names_(make_names()) {}

RedisTable::NamesPointer RedisTable::make_names() const {
  const auto made = std::make_shared<Names>();
  const bool own = shared_.options.names == StoreNames::own;
  const std::string tag = own ? cat("hctr{", name_, "/", drawn_number()) : cat("hps_et{", name_);
  for (int64_t p = 0; p < partitions_; ++p) {
    made->values.push_back(cat(tag, "/p", p, "}v"));
    made->uses.push_back(cat(tag, "/p", p, "}t"));
  }
  return made;
}

RedisTable::NamesPointer RedisTable::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

bool RedisTable::counts_uses() const {
  return !shared_.lowest && shared_.options.most_rows > 0 &&
         shared_.options.eviction != StoreRedisOptions::Eviction::random;
}

void RedisTable::check(const char* problem) const {
  if (problem) throw Error(Kind::io, cat("table '", name_, "' in Redis: ", problem));
}

void RedisTable::check_keys(std::span<const int64_t> keys) const {
  for (const int64_t key : keys)
    if (!fits_key(key, shared_.options.key_bytes))
      throw Error(Kind::data, cat("key ", key, " does not fit in the keys of ", shared_.options.key_bytes,
                                  " bytes of table '", name_, "' in Redis"));
}

void RedisTable::begin(bool clear_first) {
  if (!shared_.lowest) {
    if (clear_first && shared_.options.names == StoreNames::hugectr) {
      const std::lock_guard lock(mutex_);
      believed_ = false;  // false until the rows are cleared
    }
    return;
  }
  const NamesPointer of = names();
  if (clear_first) clear(*of, true);
  if (!has_marks()) return;
  RedisBatch batch;
  for (const std::string& hash : of->values) {
    batch.begin("HSET", hash, 2, false);
    batch.word(kRedisMark);
    batch.word("1");
  }
  check(batch.run(*shared_.client, shared_.lowest));
}

void RedisTable::clear(const Names& of, bool waits) const {
  RedisBatch batch;
  for (const auto* list : {&of.values, &of.uses})
    for (const std::string& hash : *list) batch.begin("UNLINK", hash, 0, false);
  check(batch.run(*shared_.client, waits));
}

void RedisTable::clear_quietly() const try { clear(*names(), false); } catch (const Error&) {
  // the error is ignored: no other table reads rows under these names
}

RedisTable::~RedisTable() {
  if (shared_.options.names == StoreNames::own) clear_quietly();
}

void RedisTable::close(bool remove) {
  if (shared_.options.names == StoreNames::own) return;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  if (remove) clear_quietly();
}

RedisTable::NamesPointer RedisTable::believed_names() {
  NamesPointer of;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ && shared_.lowest)
      throw Error(Kind::usage, cat("table '", name_, "' in Redis was unloaded while it was read"));
    if (closed_) return nullptr;
    if (believed_) return names_;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_try_) return nullptr;
    next_try_ = now + std::chrono::seconds(1);
    of = names_;
  }
  try {
    clear(*of, false);
  } catch (const Error&) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  believed_ = true;
  return names_;
}

RedisTable::Grouped RedisTable::group(std::span<const int64_t> keys, const uint8_t* found) const {
  thread_local std::vector<uint32_t> partition_of;
  Grouped grouped;
  partition_of.resize(keys.size());
  grouped.begins.assign(static_cast<size_t>(partitions_) + 1, 0);
  const auto skipped = static_cast<uint32_t>(partitions_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool asks = !(found && found[i]) && fits_key(keys[i], shared_.options.key_bytes);
    partition_of[i] = asks ? hugectr_partition(keys[i], skipped) : skipped;
    if (asks) ++grouped.begins[partition_of[i] + 1];
  }
  for (size_t p = 1; p < grouped.begins.size(); ++p) grouped.begins[p] += grouped.begins[p - 1];
  grouped.places.resize(grouped.begins.back());
  std::vector<size_t> next(grouped.begins.begin(), grouped.begins.end() - 1);
  for (size_t i = 0; i < keys.size(); ++i)
    if (partition_of[i] != skipped) grouped.places[next[partition_of[i]]++] = static_cast<int32_t>(i);
  return grouped;
}

int64_t RedisTable::size() const {
  const_cast<RedisTable*>(this)->restore();
  const NamesPointer of = names();
  std::vector<int64_t> numbers(of->values.size());
  RedisBatch batch;
  for (size_t p = 0; p < numbers.size(); ++p) batch.begin("HLEN", of->values[p], 0, true, number_reply(&numbers[p]));
  check(batch.run(*shared_.client, shared_.lowest));
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}) - (has_marks() ? partitions_ : 0);
}

LevelStatistics RedisTable::statistics() const {
  LevelStatistics all{.asked = asked_.load(), .found = found_.load(), .failed = failed_.load()};
  try {
    all.rows = size();
    all.bytes = all.rows * (8 + row_bytes_);
  } catch (const Error&) {
    if (shared_.lowest) throw;
  }
  return all;
}

}  // namespace hctr
