// Look-ups in a table in Redis.
#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
#include "store/redis_background.h"
#include "store/redis_table.h"
#include "store/table_names.h"

namespace hctr {
namespace {

constexpr size_t kFieldsOfRead = 1024;

/// The destination of the rows of one look-up.
struct WantedRows {
  KeysToFind wanted;
  float* rows;
  int64_t stride, row_bytes;
  uint8_t* hit;
  int64_t wrong_key = 0, wrong_bytes = -1;  // key and size of a value that has a wrong size; -1: none
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

}  // namespace

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
      throw Error(Kind::io, cat("table '", name_,
                                "' in Redis has lost rows: a hash does not exist; load the table "
                                "again"));
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
  const bool restores = restores_;
  if (counts_uses() || restores) before.assign(found, found + wanted.keys.size());
  int64_t hits = find(*of, wanted, rows, stride, found);
  if (restores) hits += show_before(wanted, rows, stride, before.data(), found);
  found_.fetch_add(hits, std::memory_order_relaxed);
  if (counts_uses() && hits > 0) note_uses(of, wanted, before.data(), found);
  return hits;
}

int64_t RedisTable::show_before(KeysToFind wanted, float* rows, int64_t stride, const uint8_t* known, uint8_t* found) {
  const std::lock_guard lock(restoring_);
  int64_t more = 0;
  for (size_t i = 0; i < wanted.keys.size(); ++i) {
    const auto at = known[i] ? before_.end() : before_.find(wanted.keys[i]);
    if (at == before_.end()) continue;
    more += (at->second ? 1 : 0) - found[i];
    found[i] = at->second ? 1 : 0;
    if (at->second)
      std::copy_n(at->second->data(), dim_,
                  rows + (wanted.places ? wanted.places[i] : static_cast<int32_t>(i)) * stride);
  }
  return more;
}

int64_t RedisTable::count(std::span<const int64_t> keys) {
  restore();
  std::vector<uint8_t> found(keys.size());
  const NamesPointer of = believed_names();
  return of ? find(*of, {keys}, nullptr, 0, found.data()) : 0;
}

void RedisTable::note_uses(NamesPointer of, KeysToFind wanted, const uint8_t* before, const uint8_t* found) const {
  std::vector<int64_t> used;
  for (size_t i = 0; i < wanted.keys.size(); ++i)
    if (found[i] && !before[i]) used.push_back(wanted.keys[i]);
  // The table may be destroyed before the work runs, so the lambda owns all that it needs.
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
    batch.run(*client, false);  // errors are ignored: missing use counts are harmless
  });
}

}  // namespace hctr
