#include "store/make_levels.h"

#include "core/base/expect.h"
#include "store/file_level.h"
#include "store/memory_level.h"
#include "store/redis_level.h"
#include "store/rocks_level.h"
#include "store/shared_level.h"

namespace hctr {
namespace {

using LevelKind = StoreLevelOptions::Kind;

std::unique_ptr<StoreLevel> make_level(const StoreLevelOptions& of, bool lowest) {
  switch (of.kind) {
    case LevelKind::memory:
      if (!of.shared.empty()) return std::make_unique<SharedLevel>(of.shared);
      return std::make_unique<MemoryLevel>(of.most_rows);
    case LevelKind::redis:
      return std::make_unique<RedisLevel>(of.redis, lowest);
    case LevelKind::rocksdb:
      return std::make_unique<RocksLevel>(of.rocksdb);
    case LevelKind::file:
      break;
  }
  if (of.folder.empty()) throw Error(Kind::config, "a level of files needs a folder");
  return std::make_unique<FileLevel>(of.folder);
}

/// The look-up order of a level; upper levels have smaller numbers.
int depth_of(LevelKind kind) { return kind == LevelKind::memory ? 0 : kind == LevelKind::redis ? 1 : 2; }

}  // namespace

std::vector<std::unique_ptr<StoreLevel>> make_levels(const StoreOptions& options) {
  if (options.levels.empty()) throw Error(Kind::config, "a store needs a level: memory, redis, file or rocksdb");
  for (size_t l = 1; l < options.levels.size(); ++l)
    if (depth_of(options.levels[l - 1].kind) >= depth_of(options.levels[l].kind))
      throw Error(Kind::config, "levels of a store are memory, redis, then file or rocksdb; each at most once");
  if (options.levels.size() == 1 && options.levels[0].most_rows > 0)
    throw Error(Kind::config, "\"most_rows\" of the memory level needs a level below memory: redis, file or rocksdb");
  if (options.levels.size() > 1 && !options.levels[0].shared.empty())
    throw Error(Kind::config, "memory shared by processes must be the only level of a store");
  const StoreLevelOptions& last = options.levels.back();
  if (options.levels.size() > 1 && last.kind == LevelKind::redis && last.redis.names == StoreNames::hugectr)
    throw Error(Kind::config,
                "rows in Redis under HugeCTR's names cannot be combined with a level above Redis, which would return "
                "old rows: other programs change the rows in Redis");
  if (options.levels.size() > 1 && last.rocksdb.opening == StoreRocksOptions::Opening::follow)
    throw Error(Kind::config,
                "a RocksDB database that is followed cannot be combined with other levels: a level above would "
                "return old rows");
  std::vector<std::unique_ptr<StoreLevel>> levels;
  for (const StoreLevelOptions& one : options.levels) levels.push_back(make_level(one, &one == &last));
  return levels;
}

}  // namespace hctr
