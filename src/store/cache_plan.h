// The pools of a cache and their numbers of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hctr/store.h"
#include "store/device_cache.h"

namespace hctr {

/// The value of DeviceCache::Options::rows_of_change for caches in front of a store.
inline constexpr int64_t kRowsOfCacheChange = 16384;

struct CachePlan {
  struct Table {
    int64_t dim, rows;
  };
  std::vector<CachePoolOptions> pools{};
  std::vector<int32_t> pool_of_table{};

  /// Device memory of each pool in bytes.
  std::vector<int64_t> bytes(int64_t rows_of_change) const;
};

/// Plans a cache of at most `bytes`. Caches the smallest tables completely, as long as they fit. The other tables share
/// one pool per vector size. Memory is divided among these pools in proportion to the bytes of their tables' rows.
/// Errors: Error(device) if memory is too small.
CachePlan plan_cache(std::span<const CachePlan::Table>, ops::CachedType, int64_t bytes, int64_t rows_of_change);
/// Plans a cache of the size that the options name. `automatic`: the bytes of a cache whose options name no size.
CachePlan plan_cache(std::span<const CachePlan::Table>, const StoreCacheOptions&, int64_t automatic);
/// The bytes of a cache whose options name no size. Errors: Error(device).
int64_t automatic_cache_bytes(Device);

/// Errors: Error(usage) for a value outside the enumeration.
ops::CachedType cached_type(StoreCacheOptions::Rows);

}  // namespace hctr
