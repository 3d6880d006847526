// Changes tables in Redis, and reads whole tables.
#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
#include "store/redis_table.h"

namespace hctr {
namespace {

constexpr size_t kRowsOfWrite = 256, kRowsOfBatch = 8192;
constexpr int64_t kFieldsOfScan = 1000;

/// Collects the fields in a reply to HRANDFIELD or HGETALL, or in the inner array of a reply to HSCAN, in order.
struct FieldsOfReply {
  int32_t depth;
  std::vector<std::string> fields{};
  std::string cursor{};
  RedisSink sink() {
    return {this,
            [](void* self, int32_t arrays, int64_t at, const char* bytes, int64_t count) {
              auto& to = *static_cast<FieldsOfReply*>(self);
              const std::string text(bytes ? bytes : "", static_cast<size_t>(count));
              if (to.depth == 2 && arrays == 1) to.cursor = text;
              if (arrays != to.depth) return;
              to.fields.resize(static_cast<size_t>(at));  // a reply that is passed again starts over at index `at`
              to.fields.push_back(text);
            },
            [](void*, int32_t, int64_t, int64_t) {}};
  }
};

int64_t number_of_use(const std::string& value, StoreRedisOptions::Eviction eviction) {
  int64_t number = 0;
  if (eviction == StoreRedisOptions::Eviction::oldest)
    std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  else
    number = std::atoll(value.c_str());
  return number;
}

}  // namespace

void RedisTable::give_up() {
  const NamesPointer next = shared_.options.names == StoreNames::own ? make_names() : nullptr;
  const std::lock_guard lock(mutex_);
  if (next)
    names_ = next;  // rows under the previous names are abandoned
  else
    believed_ = false;
}

void RedisTable::change(size_t keys, const std::function<void(const Names&)>& body) {
  if (shared_.lowest) return body(*names());
  const NamesPointer of = believed_names();
  if (!of) {
    failed_.fetch_add(static_cast<int64_t>(keys), std::memory_order_relaxed);
    return;
  }
  try {
    body(*of);
  } catch (const Error& error) {
    if (error.kind() != Kind::io) throw;
    failed_.fetch_add(static_cast<int64_t>(keys), std::memory_order_relaxed);
    give_up();
  }
}

/// Stores the rows that a change will replace, for roll_back().
void RedisTable::remember(std::span<const int64_t> keys) {
  const std::lock_guard lock(restoring_);
  std::vector<int64_t> fresh;
  for (const int64_t key : keys)
    if (!before_.contains(key)) fresh.push_back(key);
  std::vector<float> rows(fresh.size() * static_cast<size_t>(dim_));
  std::vector<uint8_t> found(fresh.size());
  find(*names(), {fresh}, rows.data(), dim_, found.data());
  for (size_t i = 0; i < fresh.size(); ++i) {
    const float* const row = rows.data() + static_cast<int64_t>(i) * dim_;
    before_[fresh[i]] = found[i] ? std::optional(std::vector<float>(row, row + dim_)) : std::nullopt;
  }
}

void RedisTable::restore() {
  if (!restores_) return;
  const std::lock_guard lock(restoring_);
  if (!restores_) return;
  std::vector<int64_t> put_back, gone;
  std::vector<float> rows;
  for (const auto& [key, row] : before_) {
    (row ? put_back : gone).push_back(key);
    if (row) rows.insert(rows.end(), row->begin(), row->end());
  }
  write(*names(), put_back, rows.data());
  write_gone(*names(), gone);
  restores_ = false;
  before_.clear();
}

void RedisTable::flush() {
  if (waiting_.empty()) return;
  restore();
  std::vector<int64_t> all, put_now, gone;
  std::vector<float> rows;
  for (const auto& [key, row] : waiting_) {
    all.push_back(key);
    (row ? put_now : gone).push_back(key);
    if (row) rows.insert(rows.end(), row->begin(), row->end());
  }
  remember(all);
  write(*names(), put_now, rows.data());
  write_gone(*names(), gone);
  waiting_.clear();
}

void RedisTable::committed() {
  const std::lock_guard lock(restoring_);
  waits_for_commit_ = shared_.lowest;
  if (!restores_) before_.clear();
}

void RedisTable::roll_back() {
  waiting_.clear();
  {
    const std::lock_guard lock(restoring_);
    restores_ = !before_.empty();
  }
  try {
    restore();
  } catch (const Error&) {  // the next change tries again to restore the rows; until then look-ups use before_
  }
}

void RedisTable::put(std::span<const int64_t> keys, const float* rows) {
  if (shared_.lowest) check_keys(keys);
  if (!waits_for_commit_) return change(keys.size(), [&](const Names& of) { write(of, keys, rows); });
  for (size_t i = 0; i < keys.size(); ++i) {
    const float* const row = rows + static_cast<int64_t>(i) * dim_;
    waiting_[keys[i]] = std::vector<float>(row, row + dim_);
  }
}

void RedisTable::offer(std::span<const int64_t> keys, const float* rows) {
  if (!shared_.lowest && shared_.options.keep_missed) put(keys, rows);
}

void RedisTable::remove(std::span<const int64_t> keys) {
  if (!waits_for_commit_) return change(keys.size(), [&](const Names& of) { write_gone(of, keys); });
  for (const int64_t key : keys) waiting_[key] = std::nullopt;
}

void RedisTable::write(const Names& of, std::span<const int64_t> all, const float* rows) {
  const StoreRedisOptions& options = shared_.options;
  const bool is_bounded = !shared_.lowest && options.most_rows > 0;
  const auto now = static_cast<int64_t>(unix_time());
  for (size_t begin = 0; begin < all.size(); begin += kRowsOfBatch) {
    const auto keys = all.subspan(begin, std::min(kRowsOfBatch, all.size() - begin));
    const Grouped grouped = group(keys, nullptr);
    RedisBatch batch;
    std::vector<std::pair<int64_t, int64_t>> sizes;  // partition, and number of its rows
    sizes.reserve(static_cast<size_t>(partitions_));
    const auto key_at = [&](size_t i) { return &keys[static_cast<size_t>(grouped.places[i])]; };
    grouped.each_piece(kRowsOfWrite, [&](size_t p, size_t first, size_t count) {
      batch.begin("HSET", of.values[p], 2 * count, false);
      for (size_t i = first; i < first + count; ++i) {
        batch.word(key_at(i), options.key_bytes);
        batch.word(rows + static_cast<int64_t>(begin + static_cast<size_t>(grouped.places[i])) * dim_, row_bytes_);
      }
      for (size_t i = first; counts_uses() && i < first + count; ++i) {
        const bool oldest = options.eviction == StoreRedisOptions::Eviction::oldest;
        batch.begin(oldest ? "HSET" : "HINCRBY", of.uses[p], 2, false);
        batch.word(key_at(i), options.key_bytes);
        if (oldest)
          batch.word(&now, sizeof now);
        else
          batch.word("1");
      }
      if (first + count != grouped.begins[p + 1]) return;
      if (is_bounded)
        batch.begin("HLEN", of.values[p], 0, false,
                    number_reply(&sizes.emplace_back(static_cast<int64_t>(p), int64_t{0}).second));
      for (const auto* list : {&of.values, &of.uses})
        if (!shared_.lowest && options.expire_seconds > 0) {
          batch.begin("EXPIRE", (*list)[p], 1, false);
          batch.number(options.expire_seconds);
        }
    });
    check(batch.run(*shared_.client, shared_.lowest));
    for (const auto& [partition, size] : sizes)
      if (size > options.most_rows) evict(of, partition, size);
  }
}

void RedisTable::write_gone(const Names& of, std::span<const int64_t> keys) {
  const Grouped grouped = group(keys, nullptr);
  RedisBatch batch;
  grouped.each_piece(kFieldsOfScan, [&](size_t p, size_t first, size_t count) {
    for (const auto* list : {&of.values, &of.uses}) {
      if (list == &of.uses && shared_.options.names == StoreNames::own && !counts_uses()) continue;
      batch.begin("HDEL", (*list)[p], count, false);
      for (size_t i = first; i < first + count; ++i)
        batch.word(&keys[static_cast<size_t>(grouped.places[i])], shared_.options.key_bytes);
    }
  });
  check(batch.run(*shared_.client, shared_.lowest));
}

/// Evicts rows until evict_to * most_rows are left.
void RedisTable::evict(const Names& of, int64_t partition, int64_t rows) const {
  const StoreRedisOptions& options = shared_.options;
  const auto p = static_cast<size_t>(partition);
  auto excess = static_cast<size_t>(
      std::max<int64_t>(1, rows - static_cast<int64_t>(static_cast<double>(options.most_rows) * options.evict_to)));
  std::vector<std::string> victims;
  if (counts_uses()) {
    FieldsOfReply uses{.depth = 1};
    RedisBatch batch;
    batch.begin("HGETALL", of.uses[p], 0, true, uses.sink());
    check(batch.run(*shared_.client, shared_.lowest));
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (size_t i = 0; i + 1 < uses.fields.size(); i += 2)
      sorted.emplace_back(number_of_use(uses.fields[i + 1], options.eviction), uses.fields[i]);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < std::min(excess, sorted.size()); ++i) victims.push_back(sorted[i].second);
    excess -= victims.size();
  }
  if (excess > 0) {
    FieldsOfReply drawn{.depth = 1};
    RedisBatch batch;
    batch.begin("HRANDFIELD", of.values[p], 1, true, drawn.sink());
    batch.number(static_cast<int64_t>(excess));
    check(batch.run(*shared_.client, shared_.lowest));
    victims.insert(victims.end(), drawn.fields.begin(), drawn.fields.end());
  }
  RedisBatch batch;
  for (size_t first = 0; first < victims.size(); first += static_cast<size_t>(kFieldsOfScan)) {
    const size_t count = std::min(static_cast<size_t>(kFieldsOfScan), victims.size() - first);
    for (const auto* list : {&of.values, &of.uses}) {
      batch.begin("HDEL", (*list)[p], count, false);
      for (size_t i = first; i < first + count; ++i) batch.word(victims[i]);
    }
  }
  check(batch.run(*shared_.client, shared_.lowest));
}

void RedisTable::each(const RowSink& sink) {
  restore();
  const NamesPointer of = names();
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (const std::string& hash : of->values) {
    std::unordered_set<int64_t> seen;  // a scan may return a field twice
    std::string cursor = "0";
    do {
      FieldsOfReply reply{.depth = 2};
      RedisBatch batch;
      batch.begin("HSCAN", hash, 3, true, reply.sink());
      batch.word(cursor);
      batch.word("COUNT");
      batch.number(kFieldsOfScan);
      check(batch.run(*shared_.client, shared_.lowest));
      cursor = reply.cursor;
      keys.clear();
      rows.clear();
      for (size_t i = 0; i + 1 < reply.fields.size(); i += 2) {
        const std::string &field = reply.fields[i], &value = reply.fields[i + 1];
        if (field == kRedisMark) continue;
        int64_t key = 0;
        std::memcpy(&key, field.data(), std::min(field.size(), sizeof key));
        if (static_cast<int32_t>(field.size()) != shared_.options.key_bytes ||
            static_cast<int64_t>(value.size()) != row_bytes_)
          throw Error(Kind::data, cat("table '", name_, "' in Redis: the row of key ", key, " has ", value.size(),
                                      " bytes, and its key has ", field.size(), " bytes; expected ", row_bytes_,
                                      " and ", shared_.options.key_bytes));
        if (!seen.insert(key).second) continue;
        keys.push_back(key);
        rows.resize(rows.size() + static_cast<size_t>(dim_));
        std::memcpy(rows.data() + rows.size() - static_cast<size_t>(dim_), value.data(), value.size());
      }
      if (!keys.empty()) sink(keys, rows);
    } while (cursor != "0");
  }
}

}  // namespace hctr
