#include "store/bound_version.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/device/device.h"

namespace hctr {
BoundVersion::BoundVersion(StoreView view, std::shared_ptr<const Version> version, const StoreCacheOptions& options,
                           const Device* device)
    : view_(std::move(view)), version_(std::move(version)), options_(options) {
  if (!device) return;
  device_ = *device;
  cache_ = std::make_unique<DeviceCache>(
      DeviceCache::Options{.device = *device,
                           .rows_of_change = kRowsOfCacheChange,
                           .admit_after = options.admit_after,
                           .wait_ms = options.wait_ms},
      CacheSource{.rows = [this](int32_t space, std::span<const int64_t> keys, float* rows,
                                 uint8_t* found) { read(space, keys, rows, found); },
                  .updates = [this] { return Content(version_->content)->number; }});
}

CacheOfView cache_of(const StoreView& view) {
  const StoreShared& store = BoundVersion::store_of(view);
  return {store.cache, !store.changes_elsewhere};
}

/// Waits for an update that is changing the cache.
BoundVersion::~BoundVersion() {
  if (!link_) return;
  const std::lock_guard lock(link_->lock);
  link_->to = nullptr;
}

std::shared_ptr<BoundVersion> BoundVersion::shared(const StoreView& view, Device device) {
  StoreShared& store = *view.state()->store;
  if (store.changes_elsewhere)
    throw Error(Kind::config,
                "another program changes rows of the store, and a GPU cache would return old rows: use the CPU");
  const std::lock_guard creating(store.caching);
  std::shared_ptr<BoundVersion> before;
  for (const std::weak_ptr<BoundVersion>& one : store.caches) {
    const std::shared_ptr<BoundVersion> other = one.lock();
    if (!other || *other->device() != device || other->version_->model != view.state()->model) continue;
    if (other->version_ == view.state()) return other;
    before = other;
  }
  const auto next = std::make_shared<BoundVersion>(view, view.state(), store.cache, &device);
  {
    const std::scoped_lock changing(store.updating, store.changing);
    next->fill(before.get());
  }
  std::erase_if(store.caches, [](const auto& one) { return one.expired(); });
  store.caches.push_back(next);
  return next;
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
  link_ = std::make_shared<Link>();
  link_->to = this;
  listener_ = std::make_shared<const Version::Listener>(
      [link = link_](const std::vector<ChangesOfTable>& changes, uint64_t number) {
        const std::lock_guard lock(link->lock);
        if (link->to) link->to->take(changes, number);
      });
  std::erase_if(version_->listeners, [](const auto& one) { return one.expired(); });
  version_->listeners.push_back(listener_);
}

void BoundVersion::make_pools() {
  std::vector<CachePlan::Table> tables;
  for (const auto& table : version_->tables()) {
    tables.push_back({table->dim(), table->rows()});
    defaults_.push_back(table->default_value());
  }
  const bool sized = options_.bytes > 0 || options_.most_rows > 0 || options_.share > 0;
  const CachePlan plan = plan_cache(tables, options_, sized ? 0 : automatic_cache_bytes(*device_));
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
    if (tables[t]->name() == table && !cache_->whole(pools_[t].pool)) return cache_->keys_by_use(space_of(t, slot));
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
  table.get_distinct(place.second, keys, rows, found,
                     content->pending ? &content->pending->rows[place.first] : nullptr);
}

/// Applies an update to the cache. Look-ups in the store already see the update. If this fails, all later requests
/// throw the error, because the cached rows are out of date.
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

void BoundVersion::check(std::span<const StoreCache::Part> parts) const {
  const Content content(version_->content);
  for (const StoreCache::Part& part : parts) {
    if (part.table >= content->tables.size())
      throw Error(Kind::usage, cat("there is no table ", part.table, ": model '", version_->model, "' has ",
                                   content->tables.size(), " tables"));
    const StoreTable& table = *content->tables[part.table];
    const auto fail = [&](const std::string& why) {
      throw Error(Kind::usage, cat("table '", table.name(), "': ", why));
    };
    if (part.stride != 0 && part.stride < table.dim())
      fail(cat("vectors are ", part.stride, " elements apart, less than the vector length ", table.dim()));
    if (part.slot != 0 && !table.about().by_slot)
      fail(cat("its rows are identified by key alone, but slot ", part.slot, " was given"));
    if (!part.vectors && !part.keys.empty()) fail("the memory for its vectors is missing");
    if (part.keys_on_gpu && !cache_) fail("its keys are on a GPU, but the cache has none: pass host memory");
    if (part.keys_on_gpu) continue;
    for (size_t b = 0; b + 1 < part.offsets.size(); ++b)
      if (part.offsets[b] > part.offsets[b + 1]) fail(cat("offset ", b + 1, " is less than the previous offset"));
    if (!part.offsets.empty() &&
        (part.offsets.front() < 0 || part.offsets.back() > static_cast<int64_t>(part.keys.size())))
      fail(cat("offsets go from ", part.offsets.front(), " to ", part.offsets.back(), ", expected 0 to at most ",
               part.keys.size(), ", the number of keys"));
  }
}

}  // namespace hctr
