// A device cache that is bound to one version of a model.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hctr/store_cache.h"
#include "store/device_cache.h"
#include "store/version.h"

namespace hctr {

/// Thread-safe, except fill().
class HCTR_HIDDEN BoundVersion {
 public:
  using Version = StoreView::Version;

  /// `device`: the cache's device; null: there is no cache, and the store answers requests.
  BoundVersion(StoreView, std::shared_ptr<const Version>, const StoreCacheOptions&, const Device* device);

  /// Chooses the tables to cache completely and loads them. For each other table, loads the keys that `before` used
  /// most recently; `before` may be null. Subscribes to updates of the version. Call with the locks of Store::State
  /// held. Errors: Error(device).
  void fill(BoundVersion* before);

  StoreCache::Answer lookup(std::span<const StoreCache::Part>, void* stream);
  StoreCacheStatistics statistics() const;
  const StoreView& view() const { return view_; }

 private:
  using Content = ReadCopies<Version::Content>::Reading;
  struct PoolOfTable {
    int32_t pool;
    bool whole;
  };

  void make_pools();
  void warm(StoreTable&, size_t number, BoundVersion& before);
  std::vector<int64_t> hot_keys(const std::string& table, int32_t slot);
  int32_t space_of(size_t table, int32_t slot);
  void read(int32_t space, std::span<const int64_t> keys, float* rows, uint8_t* found) const;
  void take(const std::vector<ChangesOfTable>&, uint64_t number);
  void check(std::span<const StoreCache::Part>) const;
  StoreCache::Answer read_all(std::span<const StoreCache::Part>) const;
  void name_missing(std::span<const StoreCache::Part>) const;

  StoreView view_;
  std::shared_ptr<const Version> version_;
  StoreCacheOptions options_;
  std::vector<PoolOfTable> pools_;  // of tables
  std::vector<float> defaults_;     // likewise
  mutable std::shared_mutex spaces_lock_;
  std::map<std::pair<size_t, int32_t>, int32_t> spaces_;  // [table, slot] the key space in the cache
  std::vector<std::pair<size_t, int32_t>> places_;        // of spaces
  std::mutex failure_lock_;
  std::exception_ptr failure_;
  std::unique_ptr<DeviceCache> cache_;  // null without a device
  std::shared_ptr<const Version::Listener> listener_;
};

/// Creates a StoreCache on a device. The CPU is the reference implementation of the GPU's cache. `Device` null: no
/// cache.
StoreCache cache_on(const Store&, std::string_view model, const StoreCacheOptions&, const Device*);

/// The pools of a cache and their numbers of rows.
struct CachePlan {
  struct Table {
    int64_t dim, rows;
  };
  std::vector<CachePoolOptions> pools{};
  std::vector<int32_t> pool_of_table{};
};
/// Caches the smallest tables completely, as long as they fit. The other tables share one pool per vector size. Memory
/// is divided among these pools in proportion to the bytes of their tables' rows. Errors: Error(device) if memory is
/// too small.
CachePlan plan_cache(std::span<const CachePlan::Table>, ops::CachedType, int64_t bytes, int64_t rows_of_change);

}  // namespace hctr
