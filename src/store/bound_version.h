// One version of a model in a cache of its own.
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

/// Any thread calls any member but fill().
class HCTR_HIDDEN BoundVersion {
 public:
  using Version = StoreView::Version;

  /// `device`: of the cache; null: there is none, and the store answers.
  BoundVersion(StoreView, std::shared_ptr<const Version>, const StoreCacheOptions&, const Device* device);

  /// Decides which tables are whole and loads them; of the others the keys that `before` used last, which may be null.
  /// From then on updates of the version come in. Under the locks of Store::State. Errors: Error(device).
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
  std::map<std::pair<size_t, int32_t>, int32_t> spaces_;  // of tables and slots
  std::vector<std::pair<size_t, int32_t>> places_;        // of spaces
  std::mutex failure_lock_;
  std::exception_ptr failure_;
  std::unique_ptr<DeviceCache> cache_;  // null: no GPU
  std::shared_ptr<const Version::Listener> listener_;
};

/// A StoreCache on a device, which may be the CPU: the reference for that of a GPU. Null: without a cache.
StoreCache cache_on(const Store&, std::string_view model, const StoreCacheOptions&, const Device*);

/// How many rows of each table a cache of this size has.
struct CachePlan {
  struct Table {
    int64_t dim, rows;
  };
  std::vector<CachePoolOptions> pools{};
  std::vector<int32_t> pool_of_table{};
};
/// The smallest tables are whole, as far as they fit; those of one width among the others share a pool, and the pools
/// share what is left by the bytes of their rows. Errors: Error(device) where that is too little.
CachePlan plan_cache(std::span<const CachePlan::Table>, ops::CachedType, int64_t bytes, int64_t rows_of_change);

}  // namespace hctr
