#include "store/redis_table.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <utility>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
#include "store/redis_background.h"
#include "store/table_names.h"

namespace hctr {
namespace {

constexpr size_t kFieldsOfRead = 1024;

/// Where the rows of one HMGET go.
struct WantedRows {
  KeysToFind wanted;
  float* rows;
  int64_t stride, row_bytes;
  uint8_t* hit;
  int64_t wrong_key = 0, wrong_bytes = -1;  // of a value of another size
};
struct RowsOfCommand {
  WantedRows* of;
  const int32_t* at;
  int64_t count, marks;
  bool lost = false;

  static void take(void* self, int32_t depth, int64_t place, const char* bytes, int64_t size) {
    auto& command = *static_cast<RowsOfCommand*>(self);
    if (depth != 1) return;
    if (place < command.marks) {
      command.lost = bytes == nullptr;
      return;
    }
    if (place - command.marks >= command.count) return;
    WantedRows& to = *command.of;
    const int32_t i = command.at[place - command.marks];
    to.hit[i] = 0;
    if (!bytes) return;
    if (size != to.row_bytes) {
      to.wrong_key = to.wanted.keys[static_cast<size_t>(i)];
      to.wrong_bytes = size;
      return;
    }
    if (to.rows)
      std::memcpy(to.rows + (to.wanted.places ? to.wanted.places[i] : i) * to.stride, bytes, static_cast<size_t>(size));
    to.hit[i] = 1;
  }
};

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
      throw Error(Kind::data, cat("key ", key, " has no place among keys of ", shared_.options.key_bytes,
                                  " bytes of table '", name_, "' in Redis"));
}

void RedisTable::begin(bool clear_first) {
  if (!shared_.lowest) {
    if (clear_first && shared_.options.names == StoreNames::hugectr) {
      const std::lock_guard lock(mutex_);
      believed_ = false;  // until they are cleared
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
  // nobody takes rows under these names for others
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

int64_t RedisTable::find(const Names& of, KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) {
  thread_local std::vector<uint8_t> hit;
  hit.assign(wanted.keys.size(), 0);
  const Grouped grouped = group(wanted.keys, found);
  WantedRows to{wanted, rows, stride, row_bytes_, hit.data()};
  std::deque<RowsOfCommand> parts;
  RedisBatch batch;
  const int64_t marks = has_marks() ? 1 : 0;
  grouped.each_piece(kFieldsOfRead, [&](size_t p, size_t first, size_t count) {
    parts.push_back({&to, grouped.places.data() + first, static_cast<int64_t>(count), marks});
    RowsOfCommand& part = parts.back();
    batch.begin("HMGET", of.values[p], count + static_cast<size_t>(marks), true,
                {&part, RowsOfCommand::take, [](void*, int32_t, int64_t, int64_t) {}});
    if (marks > 0) batch.word(kRedisMark);
    for (size_t i = first; i < first + count; ++i)
      batch.word(&wanted.keys[static_cast<size_t>(grouped.places[i])], shared_.options.key_bytes);
  });
  const char* const problem = batch.run(*shared_.client, shared_.lowest);
  if (shared_.lowest) {
    check(problem);
    if (std::ranges::any_of(parts, [](const RowsOfCommand& part) { return part.lost; }))
      throw Error(Kind::io, cat("table '", name_, "' in Redis has lost rows: a hash is not there; load it again"));
    if (to.wrong_bytes >= 0)
      throw Error(Kind::data, cat("table '", name_, "' in Redis: the row of key ", to.wrong_key, " has ",
                                  to.wrong_bytes, " bytes, not ", row_bytes_));
  }
  int64_t hits = 0, failed = 0;
  for (size_t c = 0; c < parts.size(); ++c) {
    if (!batch.done(c)) {
      failed += parts[c].count;
      continue;
    }
    for (int64_t i = 0; i < parts[c].count; ++i)
      if (hit[static_cast<size_t>(parts[c].at[i])]) {
        found[parts[c].at[i]] = 1;
        ++hits;
      }
  }
  if (failed > 0) failed_.fetch_add(failed, std::memory_order_relaxed);
  return hits;
}

int64_t RedisTable::get(KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) {
  thread_local std::vector<uint8_t> before;
  const auto done = std::count_if(found, found + wanted.keys.size(), [](uint8_t one) { return one != 0; });
  const int64_t asked = static_cast<int64_t>(wanted.keys.size()) - done;
  asked_.fetch_add(asked, std::memory_order_relaxed);
  const NamesPointer of = believed_names();
  if (!of) {
    failed_.fetch_add(asked, std::memory_order_relaxed);
    return 0;
  }
  if (counts_uses()) before.assign(found, found + wanted.keys.size());
  const int64_t hits = find(*of, wanted, rows, stride, found);
  found_.fetch_add(hits, std::memory_order_relaxed);
  if (counts_uses() && hits > 0) note_uses(of, wanted, before.data(), found);
  return hits;
}

int64_t RedisTable::count(std::span<const int64_t> keys) {
  restore();
  std::vector<uint8_t> found(keys.size());
  const NamesPointer of = believed_names();
  return of ? find(*of, {keys}, nullptr, 0, found.data()) : 0;
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

void RedisTable::note_uses(NamesPointer of, KeysToFind wanted, const uint8_t* before, const uint8_t* found) const {
  std::vector<int64_t> used;
  for (size_t i = 0; i < wanted.keys.size(); ++i)
    if (found[i] && !before[i]) used.push_back(wanted.keys[i]);
  // The table may be gone when it is done: what it needs goes along.
  shared_.background->add([of = std::move(of), used = std::move(used), client = shared_.client,
                           options = shared_.options, partitions = static_cast<uint32_t>(partitions_)] {
    RedisBatch batch;
    const auto now = static_cast<int64_t>(unix_time());
    for (const int64_t key : used) {
      const bool oldest = options.eviction == StoreRedisOptions::Eviction::oldest;
      batch.begin(oldest ? "HSET" : "HINCRBY", of->uses[hugectr_partition(key, partitions)], 2, false);
      batch.word(&key, options.key_bytes);
      if (oldest)
        batch.word(&now, sizeof now);
      else
        batch.word("1");
    }
    batch.run(*client, false);  // uses that are not counted matter little
  });
}

}  // namespace hctr
