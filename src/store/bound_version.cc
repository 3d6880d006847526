#include "store/bound_version.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/device/device.h"

namespace hctr {
namespace {

constexpr int64_t kRowsOfCacheChange = 16384;

ops::CachedType type_of(StoreCacheOptions::Rows rows) {
  switch (rows) {
    case StoreCacheOptions::Rows::f32:
      return ops::CachedType::f32;
    case StoreCacheOptions::Rows::f16:
      return ops::CachedType::f16;
    case StoreCacheOptions::Rows::bf16:
      return ops::CachedType::bf16;
    case StoreCacheOptions::Rows::fp8:
      return ops::CachedType::fp8;
    case StoreCacheOptions::Rows::int8:
      return ops::CachedType::int8;
  }
  throw Error(Kind::usage, "the field rows of StoreCacheOptions must be f32, f16, bf16, fp8 or int8");
}

ops::Combiner combiner_of(StoreView::Pooling pooling) {
  return pooling == StoreView::Pooling::sum    ? ops::Combiner::sum
         : pooling == StoreView::Pooling::mean ? ops::Combiner::mean
                                               : ops::Combiner::sqrtn;
}

}  // namespace

BoundVersion::BoundVersion(StoreView view, std::shared_ptr<const Version> version, const StoreCacheOptions& options,
                           const Device* device)
    : view_(std::move(view)), version_(std::move(version)), options_(options) {
  if (!device) return;
  cache_ = std::make_unique<DeviceCache>(
      DeviceCache::Options{.device = *device,
                           .rows_of_change = kRowsOfCacheChange,
                           .admit_after = options.admit_after,
                           .wait_ms = options.wait_ms},
      CacheSource{.rows = [this](int32_t space, std::span<const int64_t> keys, float* rows,
                                 uint8_t* found) { read(space, keys, rows, found); },
                  .updates = [this] { return Content(version_->content)->number; }});
}

void BoundVersion::fill(BoundVersion* before) {
  if (!cache_) return;
  make_pools();
  cache_->update({}, version_->content.get().number);
  const auto& tables = version_->tables();
  for (size_t t = 0; t < tables.size(); ++t) {
    if (pools_[t].whole)
      tables[t]->each([&](int32_t slot, std::span<const int64_t> keys, std::span<const float> rows) {
        cache_->replace(space_of(t, slot), keys, rows.data());
      });
    else if (before && before->cache_)
      warm(*tables[t], t, *before);
  }
  listener_ = std::make_shared<const Version::Listener>(
      [this](const std::vector<ChangesOfTable>& changes, uint64_t number) { take(changes, number); });
  std::erase_if(version_->listeners, [](const auto& one) { return one.expired(); });
  version_->listeners.push_back(listener_);
}

void BoundVersion::make_pools() {
  std::vector<CachePlan::Table> tables;
  for (const auto& table : version_->tables()) {
    tables.push_back({table->dim(), table->rows()});
    defaults_.push_back(table->default_value());
  }
  const int64_t bytes = options_.bytes > 0 ? options_.bytes : free_memory(cache_->device()) / 5 * 4;
  const CachePlan plan = plan_cache(tables, type_of(options_.rows), bytes, kRowsOfCacheChange);
  for (const CachePoolOptions& pool : plan.pools) cache_->add_pool(pool);
  for (const int32_t pool : plan.pool_of_table) pools_.push_back({pool, plan.pools[static_cast<size_t>(pool)].whole});
}

void BoundVersion::warm(StoreTable& table, size_t number, BoundVersion& before) {
  for (const auto& [slot, name] : table.spaces()) {
    std::vector<int64_t> keys = before.hot_keys(table.name(), slot);
    std::reverse(keys.begin(), keys.end());  // add the most recently used keys last: the cache evicts them last
    for (size_t first = 0; first < keys.size(); first += kRowsOfCacheChange) {
      const std::span<const int64_t> some =
          std::span(keys).subspan(first, std::min<size_t>(kRowsOfCacheChange, keys.size() - first));
      std::vector<float> rows(some.size() * static_cast<size_t>(table.dim()));
      std::vector<uint8_t> found(some.size());
      table.get(slot, some, rows.data(), table.dim(), found.data(), nullptr);
      for (uint8_t& one : found) one = one == 0;
      cache_->replace(space_of(number, slot), some, rows.data(), found.data());
    }
  }
}

std::vector<int64_t> BoundVersion::hot_keys(const std::string& table, int32_t slot) {
  const auto tables = Content(version_->content)->tables;
  for (size_t t = 0; t < tables.size(); ++t)
    if (tables[t]->name() == table && !pools_[t].whole) return cache_->keys_by_use(space_of(t, slot));
  return {};
}

int32_t BoundVersion::space_of(size_t table, int32_t slot) {
  const std::pair<size_t, int32_t> place(table, slot);
  {
    const std::shared_lock lock(spaces_lock_);
    if (const auto found = spaces_.find(place); found != spaces_.end()) return found->second;
  }
  const std::unique_lock lock(spaces_lock_);
  if (const auto found = spaces_.find(place); found != spaces_.end()) return found->second;
  const int32_t space = cache_->add_space(pools_[table].pool, defaults_[table]);
  places_.push_back(place);
  HCTR_EXPECT(static_cast<size_t>(space) + 1 == places_.size(), "space ", space, " of ", places_.size());
  return spaces_[place] = space;
}

void BoundVersion::read(int32_t space, std::span<const int64_t> keys, float* rows, uint8_t* found) const {
  std::pair<size_t, int32_t> place;
  {
    const std::shared_lock lock(spaces_lock_);
    place = places_[static_cast<size_t>(space)];
  }
  const Content content(version_->content);
  StoreTable& table = *content->tables[place.first];
  table.get(place.second, keys, rows, table.dim(), found,
            content->pending ? &content->pending->rows[place.first] : nullptr);
}

/// Applies an update that the store already shows. If this fails, all later requests throw the error, because the
/// cached rows are out of date.
void BoundVersion::take(const std::vector<ChangesOfTable>& changes, uint64_t number) {
  try {
    std::vector<DeviceCache::Update> updates;
    for (size_t t = 0; t < changes.size(); ++t)
      for (const auto& [slot, change] : changes[t])
        updates.push_back({space_of(t, slot), change.keys, change.rows.data(), change.removed});
    cache_->update(updates, number);
  } catch (...) {
    const std::lock_guard lock(failure_lock_);
    failure_ = std::current_exception();
  }
}

StoreCache::Answer BoundVersion::lookup(std::span<const StoreCache::Part> parts, void* stream) {
  check(parts);
  std::exception_ptr failure;
  {
    const std::lock_guard lock(failure_lock_);
    failure = failure_;
  }
  if (failure) std::rethrow_exception(failure);
  if (!cache_) return read_all(parts);
  std::vector<CacheRequest> requests;
  for (const StoreCache::Part& part : parts)
    requests.push_back({.space = space_of(part.table, part.slot),
                        .keys = part.keys,
                        .offsets = part.offsets,
                        .combiner = combiner_of(part.pooling),
                        .vectors = part.vectors,
                        .stride = part.stride,
                        .keys_there = part.keys_on_gpu});
  CacheResult result;
  cache_->lookup(requests, {cache_->device(), stream},
                 options_.default_on_miss ? CacheMisses::defaulted : CacheMisses::answered, &result);
  if (result.defaults > 0 && version_->on_miss == OnMiss::error && !options_.default_on_miss) name_missing(parts);
  return {result.misses, result.defaults};
}

void BoundVersion::check(std::span<const StoreCache::Part> parts) const {
  const Content content(version_->content);
  for (const StoreCache::Part& part : parts) {
    if (part.table >= content->tables.size())
      throw Error(Kind::usage,
                  cat("model '", version_->model, "' has ", content->tables.size(), " tables, not ", part.table));
    const StoreTable& table = *content->tables[part.table];
    const auto fail = [&](const std::string& why) {
      throw Error(Kind::usage, cat("table '", table.name(), "': ", why));
    };
    if (part.stride != 0 && part.stride < table.dim())
      fail(cat("vectors of ", table.dim(), " elements, ", part.stride, " apart"));
    if (part.slot != 0 && !table.about().by_slot)
      fail(cat("its rows belong to keys, but slot ", part.slot, " was given"));
    if (!part.vectors && !part.keys.empty()) fail("the memory for its vectors is missing");
    if (part.keys_on_gpu && !cache_) fail("its keys are on a GPU, but the cache is not");
    if (part.keys_on_gpu) continue;
    for (size_t b = 0; b + 1 < part.offsets.size(); ++b)
      if (part.offsets[b] > part.offsets[b + 1]) fail(cat("offset ", b + 1, " is less than the previous offset"));
    if (!part.offsets.empty() &&
        (part.offsets.front() < 0 || part.offsets.back() > static_cast<int64_t>(part.keys.size())))
      fail(cat("offsets up to ", part.offsets.back(), " of ", part.keys.size(), " keys"));
  }
}

StoreCache::Answer BoundVersion::read_all(std::span<const StoreCache::Part> parts) const {
  StoreCache::Answer answer;
  const StoreReading reading(view_);
  for (const StoreCache::Part& part : parts)
    answer.defaults += part.offsets.empty()
                           ? reading.get(part.table, part.keys, part.vectors, part.stride, nullptr, part.slot)
                           : reading.get_pooled(part.table, part.keys, part.offsets, part.pooling, part.vectors,
                                                part.stride, part.slot);
  return answer;
}

/// Looks the keys up in the store. The store's error names the first key without a row.
void BoundVersion::name_missing(std::span<const StoreCache::Part> parts) const {
  const StoreReading reading(view_);
  std::vector<float> rows;
  const std::vector<StoreView::Table> tables = view_.tables();
  for (const StoreCache::Part& part : parts) {
    if (part.keys_on_gpu)
      throw Error(Kind::data, cat("a request has keys without a row, possibly in table '", tables[part.table].name,
                                  "'; pass keys in host memory to find out which keys"));
    rows.resize(part.keys.size() * static_cast<size_t>(tables[part.table].dim));
    reading.get(part.table, part.keys, rows.data(), 0, nullptr, part.slot);
  }
}

StoreCacheStatistics BoundVersion::statistics() const {
  StoreCacheStatistics all{.version = version_->name, .whole_tables = {}};
  if (!cache_) return all;
  const std::vector<StoreView::Table> tables = view_.tables();
  for (size_t t = 0; t < pools_.size(); ++t)
    if (pools_[t].whole) all.whole_tables.push_back(tables[t].name);
  const CacheStatistics of = cache_->statistics();
  all.keys = of.keys, all.bytes = of.bytes, all.requests = of.look_ups, all.asked = of.asked;
  all.misses = of.misses, all.defaults = of.defaults, all.admitted = of.admitted, all.evicted = of.evicted;
  all.updated = of.updated, all.repeated = of.repeated, all.bypassed = of.bypassed;
  return all;
}

}  // namespace hctr
