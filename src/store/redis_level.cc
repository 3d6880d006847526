#include "store/redis_level.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/expect.h"
#include "store/level_plugins.h"
#include "store/redis_background.h"
#include "store/table_names.h"

namespace hctr {
namespace {

// larger hashes would block a server for too long when they grow or are removed
constexpr int64_t kRowsOfHash = 1'000'000;

/// The number of hashes for a table. A hash of Redis has as many buckets as the next power of two, so a hash with
/// slightly more rows than a power of two is nearly half empty. Fewer rows then share a bucket, and each look-up reads
/// less memory.
int64_t partitions_for(int64_t expected, const StoreRedisOptions& options) {
  const int64_t least = std::max<int64_t>(options.partitions, (expected + kRowsOfHash - 1) / kRowsOfHash);
  if (expected < 2 * least || options.most_rows > 0) return least;  // most_rows is a limit for each hash
  const auto buckets = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(expected / least)));
  const int64_t rows = buckets + 4 * static_cast<int64_t>(std::sqrt(static_cast<double>(buckets)));
  return std::max(least, expected / rows);
}

std::shared_ptr<RedisClient> redis_client(const StoreRedisOptions& options) {
  std::string addresses;
  for (const std::string& one : options.addresses) addresses += cat(addresses.empty() ? "" : ",", one);
  const RedisSettings settings{.addresses = addresses.c_str(),
                               .user = options.user.c_str(),
                               .password = options.password.c_str(),
                               .tls = options.tls,
                               .ca = options.ca.c_str(),
                               .certificate = options.certificate.c_str(),
                               .key = options.key.c_str(),
                               .server_name = options.server_name.c_str(),
                               .connections = options.connections,
                               .timeout_ms = options.timeout_ms,
                               .read_replicas = options.read_replicas};
  RedisClient* client = nullptr;
  if (const char* problem = redis_plugin().open(settings, &client))
    throw Error(Kind::io, cat("the level in Redis: ", problem));
  return std::shared_ptr<RedisClient>(client);
}

}  // namespace

RedisLevel::RedisLevel(const StoreRedisOptions& options, bool lowest)
    : shared_{.client = redis_client(options),
              .options = options,
              .lowest = lowest,
              .background = std::make_shared<RedisBackground>()} {
  if (lowest && (options.most_rows > 0 || options.expire_seconds > 0))
    throw Error(Kind::config, "eviction and expiry in Redis need a level below that has all rows: file or rocksdb");
}

std::shared_ptr<RedisTable> RedisLevel::add(const std::string& space, int64_t dim, int64_t expected, bool adopted) {
  const bool hugectr = shared_.options.names == StoreNames::hugectr;
  Member member{.name = hugectr ? hugectr_table_name(space) : space, .adopted = adopted};
  for (const auto& [other, one] : members_)
    if (one.name == member.name)
      throw Error(Kind::config, cat("'", member.name,
                                    "' can have only one version in Redis; unload the existing version first, or "
                                    "remove \"names\": \"hugectr\""));
  const int64_t partitions = hugectr ? shared_.options.partitions : partitions_for(expected, shared_.options);
  member.rows = std::make_shared<RedisTable>(shared_, member.name, dim, partitions);
  member.rows->begin(!adopted && !shared_.options.keep_rows);
  return (members_[space] = std::move(member)).rows;
}

std::shared_ptr<LevelTable> RedisLevel::table(const std::string& space, int64_t dim, int64_t expected) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(space);
  if (found == members_.end()) return add(space, dim, expected, false);
  HCTR_EXPECT(found->second.rows->dim() == dim, "rows of ", dim, " elements in '", space, "', which has ",
              found->second.rows->dim());
  return found->second.rows;
}

std::shared_ptr<LevelTable> RedisLevel::adopt(const std::string& space, int64_t dim) {
  if (shared_.options.names != StoreNames::hugectr)
    throw Error(Kind::config, "to use existing rows in Redis, set \"names\": \"hugectr\"");
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<RedisTable> table = add(space, dim, 0, true);
  if (table->size() == 0) {
    members_.erase(space);
    throw Error(Kind::config, cat("the Redis server has no rows of '", hugectr_table_name(space), "' in ",
                                  shared_.options.partitions, " partitions"));
  }
  return table;
}

void RedisLevel::drop(const std::string& space) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(space);
  if (found == members_.end()) return;
  found->second.rows->close(!found->second.adopted);
  members_.erase(found);
}

void RedisLevel::commit(const std::string& /*note*/) {
  const std::lock_guard lock(mutex_);
  for (const auto& [space, member] : members_) member.rows->flush();
  for (const auto& [space, member] : members_) member.rows->committed();
}

void RedisLevel::roll_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& [space, member] : members_) member.rows->roll_back();
}

}  // namespace hctr
