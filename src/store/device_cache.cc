#include "store/device_cache.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"
#include "ops/cache/row_cache_rules.h"
#include "store/device_cache_parts.h"

namespace hctr {
namespace {

constexpr int kMostPools = 256;

uint32_t sets_of(const CachePoolOptions& options) {
  // Pools without eviction leave a quarter of the entries empty, so that searches are short.
  const int64_t keys_of_set = options.whole ? ops::kCacheWays * 3 / 4 : ops::kCacheWays;
  return static_cast<uint32_t>(std::max<int64_t>(1, (options.rows + keys_of_set - 1) / keys_of_set));
}

/// Places the arrays of a pool contiguously in one block and returns the block's size. `base` null: only computes the
/// size.
size_t place_arrays(const CachePoolOptions& options, int64_t spare, std::byte* base, ops::CachePool& pool) {
  size_t at = 0;
  const auto place = [&](auto*& array, size_t count) {
    array = base ? reinterpret_cast<std::remove_reference_t<decltype(array)>>(base + at) : nullptr;
    at += (count * sizeof *array + 255) / 256 * 256;
  };
  pool.sets = sets_of(options);
  pool.dim = options.dim;
  pool.row_bytes = (options.dim * ops::bytes_of(options.type) + 15) / 16 * 16;
  pool.type = options.type;
  pool.whole = options.whole;
  const auto entries = static_cast<size_t>(pool.sets) * ops::kCacheWays;
  const size_t rows = (options.whole ? static_cast<size_t>(options.rows) : entries) + static_cast<size_t>(spare);
  HCTR_EXPECT(rows < (size_t{1} << 31) - 1, "a pool of ", rows, " rows");
  pool.row_capacity = static_cast<uint32_t>(rows);
  place(pool.entries, entries);
  place(pool.used, entries);
  place(pool.locks, pool.sets);
  place(pool.heads, rows);
  place(pool.free, rows);
  place(pool.retired, rows);
  place(pool.counts, 1);
  place(pool.rows, rows * static_cast<size_t>(pool.row_bytes));
  return at;
}

}  // namespace

DeviceCache::Pool::Pool(Device on, const CachePoolOptions& of, int64_t rows_of_change)
    : options(of), spare(rows_of_change) {
  memory = Buffer(on, place_arrays(of, spare, nullptr, device));
  place_arrays(of, spare, memory.data(), device);
}

DeviceCache::DeviceCache(const Options& options, CacheSource source)
    : options_(options),
      source_(std::move(source)),
      runtime_(options.device, {.threads = 1}),
      writer_stream_(options.device),
      writer_(runtime_, writer_stream_.ref()),
      state_(options.device, sizeof(ops::CacheState)),
      pool_list_(options.device, kMostPools * sizeof(ops::CachePool)),
      read_(options.device, std::max(sizeof(ops::CacheState), sizeof(ops::CacheCounts))) {
  HCTR_EXPECT(options.sessions >= 1 && options.sessions <= ops::kCacheSessions, options.sessions, " sessions");
  HCTR_EXPECT(options.rows_of_change >= 1, options.rows_of_change, " rows of a change");
  const CurrentDevice current(options_.device);
  // the first epoch is 1, because 0 means "no epoch"
  ops::cache_next_epoch(writer_, reinterpret_cast<ops::CacheState*>(state_.data()));
  writer_stream_.ref().synchronize();
  for (int i = 0; i < options.sessions; ++i) {
    sessions_.push_back(std::make_unique<Session>(options_.device, i));
    free_sessions_.push_back(sessions_.back().get());
  }
  worker_ = std::thread([this] { work(); });
}

DeviceCache::~DeviceCache() {
  {
    const std::lock_guard lock(pending_lock_);
    ends_ = true;
  }
  pending_changed_.notify_all();
  worker_.join();
  const CurrentDevice current(options_.device);
  for (const auto& session : sessions_) session->finish();
  sessions_.clear();
  pools_.clear();
}

int64_t DeviceCache::bytes_of(const CachePoolOptions& options, int64_t rows_of_change) {
  ops::CachePool pool;
  return static_cast<int64_t>(place_arrays(options, rows_of_change, nullptr, pool));
}

int32_t DeviceCache::add_pool(const CachePoolOptions& options) {
  HCTR_EXPECT(options.dim > 0 && options.rows > 0, "a pool of ", options.rows, " rows of ", options.dim);
  const CurrentDevice current(options_.device);
  const std::lock_guard changes(changing_);
  auto pool = std::make_unique<Pool>(options_.device, options, options_.rows_of_change);
  ops::cache_clear(writer_, pool->device);
  HCTR_EXPECT(pools_.size() < kMostPools, "a cache of more than ", kMostPools, " pools");
  copy_bytes(writer_stream_.ref(), pool_list_.data() + pools_.size() * sizeof(ops::CachePool), &pool->device,
             sizeof(ops::CachePool));
  writer_stream_.ref().synchronize();
  int64_t rows = 0;
  int32_t number = 0;
  {
    const std::lock_guard lock(lists_);
    pools_.push_back(std::move(pool));
    for (const auto& one : pools_) rows += one->options.whole ? 0 : one->options.rows;
    number = static_cast<int32_t>(pools_.size()) - 1;
  }
  {
    const std::lock_guard lock(pending_lock_);
    pending_.resize(static_cast<size_t>(number) + 1);
  }
  const std::lock_guard lock(admission_lock_);
  admission_.resize(rows);
  return number;
}

int32_t DeviceCache::add_space(int32_t pool, float default_value) {
  const std::lock_guard lock(lists_);
  HCTR_EXPECT(pool >= 0 && static_cast<size_t>(pool) < pools_.size(), "pool ", pool);
  spaces_.push_back({pool, pools_[static_cast<size_t>(pool)]->options.dim, default_value});
  return static_cast<int32_t>(spaces_.size()) - 1;
}

DeviceCache::Space DeviceCache::space(int32_t number) const {
  const std::lock_guard lock(lists_);
  HCTR_EXPECT(number >= 0 && static_cast<size_t>(number) < spaces_.size(), "space ", number, " of ", spaces_.size());
  return spaces_[static_cast<size_t>(number)];
}

std::vector<int64_t> DeviceCache::keys_by_use(int32_t number) {
  const CurrentDevice current(options_.device);
  const Space of = space(number);
  const std::lock_guard changes(changing_);
  Pool& pool = *pools_[static_cast<size_t>(of.pool)];
  const Buffer listed(options_.device, pool.device.row_capacity * sizeof(ops::CacheListed) + sizeof(uint32_t));
  auto* const list = reinterpret_cast<ops::CacheListed*>(listed.data());
  auto* const count_there = reinterpret_cast<uint32_t*>(list + pool.device.row_capacity);
  ops::cache_list(writer_, pool.device, list, count_there);
  uint32_t count = 0;
  copy_bytes(writer_stream_.ref(), &count, count_there, sizeof count);
  writer_stream_.ref().synchronize();
  std::vector<ops::CacheListed> all(count);
  copy_bytes(writer_stream_.ref(), all.data(), list, count * sizeof(ops::CacheListed));
  writer_stream_.ref().synchronize();
  std::erase_if(
      all, [&](const ops::CacheListed& one) { return one.head.space != number || one.head.scale != one.head.scale; });
  const auto age = [&](const ops::CacheListed& one) { return ops::age_of(era_, static_cast<uint8_t>(one.era)); };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return std::pair(age(a), a.head.key) < std::pair(age(b), b.head.key);
  });
  std::vector<int64_t> keys;
  for (const ops::CacheListed& one : all) keys.push_back(one.head.key);
  return keys;
}

ops::CachedType DeviceCache::type_of(int32_t pool) const {
  const std::lock_guard lock(lists_);
  return pools_[static_cast<size_t>(pool)]->options.type;
}

bool DeviceCache::whole(int32_t pool) const {
  const std::lock_guard lock(lists_);
  return pools_[static_cast<size_t>(pool)]->options.whole;
}

CacheStatistics DeviceCache::statistics() {
  const CurrentDevice current(options_.device);
  CacheStatistics all{.look_ups = look_ups_,
                      .asked = asked_,
                      .misses = misses_,
                      .defaults = defaults_,
                      .admitted = admitted_,
                      .updated = updated_,
                      .repeated = repeated_,
                      .bypassed = bypassed_};
  const std::lock_guard changes(changing_);
  for (const auto& pool : pools_) {
    const ops::CacheCounts counts = counts_of(*pool);
    all.keys += counts.keys;
    all.evicted += pool->evicted + counts.evicted;
    all.bytes += static_cast<int64_t>(pool->memory.bytes());
  }
  return all;
}

}  // namespace hctr
