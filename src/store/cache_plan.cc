#include "store/cache_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/expect.h"
#include "core/device/device.h"

namespace hctr {
namespace {

constexpr int64_t kFewestRows = 1024;

/// A pool for all rows of a table, and for a quarter more rows, which updates may add.
CachePoolOptions whole_pool_of(const CachePlan::Table& table, ops::CachedType type) {
  return {static_cast<int32_t>(table.dim), type, table.rows + table.rows / 4 + kFewestRows, true};
}

/// Merges pools of one vector size if there are more pools than a cache may have. A merged pool has rows for all its
/// tables.
void merge_pools(CachePlan& plan) {
  constexpr size_t kMostPools = 200;
  if (plan.pools.size() <= kMostPools) return;
  std::map<std::pair<int32_t, bool>, int32_t> merged;
  std::vector<CachePoolOptions> pools;
  for (int32_t& number : plan.pool_of_table) {
    CachePoolOptions& pool = plan.pools[static_cast<size_t>(number)];
    const auto [at, is_new] = merged.try_emplace({pool.dim, pool.whole}, static_cast<int32_t>(pools.size()));
    number = at->second;
    if (is_new)
      pools.push_back(pool);
    else
      pools[static_cast<size_t>(number)].rows += pool.rows;
    pool.rows = 0;  // added to the merged pool: the next table of the old pool must not add these rows again
  }
  plan.pools = std::move(pools);
}

/// Limits the cached rows of each table. Partly cached tables of one vector size share a pool.
CachePlan plan_rows(std::span<const CachePlan::Table> tables, ops::CachedType type, const StoreCacheOptions& options) {
  CachePlan plan;
  plan.pool_of_table.assign(tables.size(), -1);
  std::map<int64_t, int32_t> pool_of_dim;
  for (size_t t = 0; t < tables.size(); ++t) {
    const CachePlan::Table& table = tables[t];
    const int64_t most = options.most_rows > 0
                             ? options.most_rows
                             : static_cast<int64_t>(std::ceil(options.share * static_cast<double>(table.rows)));
    auto next = static_cast<int32_t>(plan.pools.size());
    if (most >= table.rows) {
      plan.pools.push_back(whole_pool_of(table, type));
    } else if (const auto found = pool_of_dim.find(table.dim); found != pool_of_dim.end()) {
      plan.pools[static_cast<size_t>(next = found->second)].rows += most;
    } else {
      pool_of_dim[table.dim] = next;
      plan.pools.push_back({static_cast<int32_t>(table.dim), type, most, false});
    }
    plan.pool_of_table[t] = next;
  }
  merge_pools(plan);
  return plan;
}

}  // namespace

ops::CachedType cached_type(StoreCacheOptions::Rows rows) {
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

int64_t automatic_cache_bytes(Device device) {
  const int64_t free = free_memory(device), all = free + used_memory(device);
  return std::min(all / 5 * 2, free / 5 * 4);
}

std::vector<int64_t> CachePlan::bytes(int64_t rows_of_change) const {
  std::vector<int64_t> all;
  for (const CachePoolOptions& pool : pools) all.push_back(DeviceCache::bytes_of(pool, rows_of_change));
  return all;
}

CachePlan plan_cache(std::span<const CachePlan::Table> tables, const StoreCacheOptions& options, int64_t automatic) {
  const ops::CachedType type = cached_type(options.rows);
  if (options.most_rows > 0 || options.share > 0) return plan_rows(tables, type, options);
  return plan_cache(tables, type, options.bytes > 0 ? options.bytes : automatic, kRowsOfCacheChange);
}

CachePlan plan_cache(std::span<const CachePlan::Table> tables, ops::CachedType type, int64_t bytes,
                     int64_t rows_of_change) {
  const auto bytes_of = [&](const CachePoolOptions& pool) { return DeviceCache::bytes_of(pool, rows_of_change); };
  struct Candidate {
    size_t table;
    int64_t bytes;
  };
  std::vector<Candidate> by_size;
  int64_t all = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    by_size.push_back({t, bytes_of(whole_pool_of(tables[t], type))});
    all += by_size.back().bytes;
  }
  std::sort(by_size.begin(), by_size.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  CachePlan plan;
  plan.pool_of_table.assign(tables.size(), -1);
  // If not all tables fit, half of the memory is reserved for frequently used rows of partly cached tables.
  int64_t left = bytes;
  const int64_t kept = all <= bytes ? 0 : bytes / 2;
  for (const Candidate& one : by_size) {
    if (one.bytes > left - kept) break;
    plan.pool_of_table[one.table] = static_cast<int32_t>(plan.pools.size());
    plan.pools.push_back(whole_pool_of(tables[one.table], type));
    left -= one.bytes;
  }

  std::map<int64_t, int64_t> rows_of_dim;
  double weight = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    if (plan.pool_of_table[t] >= 0) continue;
    rows_of_dim[tables[t].dim] += std::max<int64_t>(1, tables[t].rows);
    weight += static_cast<double>(std::max<int64_t>(1, tables[t].rows) * tables[t].dim);
  }
  for (const auto& [dim, rows] : rows_of_dim) {
    const auto pool = [&, width = dim](int64_t most) {
      return CachePoolOptions{static_cast<int32_t>(width), type, most, false};
    };
    // Computes bytes per row from the sizes of two pools: the size of one pool also depends on alignment (256 bytes)
    // and on sets (16 entries).
    const double of_row = static_cast<double>(bytes_of(pool(1 << 28)) - bytes_of(pool(16))) / ((1 << 28) - 16);
    const double fixed = static_cast<double>(bytes_of(pool(16))) + 4096 + 16 * of_row;
    const double share = static_cast<double>(left) * static_cast<double>(rows * dim) / weight;
    const auto fits = static_cast<int64_t>((share - fixed) / of_row);
    if (fits < std::min(rows, kFewestRows))
      throw Error(Kind::device,
                  cat("a cache of ", bytes, " bytes can contain ", std::max<int64_t>(0, fits), " rows of ", dim,
                      " elements, but needs at least ", std::min(rows, kFewestRows), ": set ",
                      static_cast<int64_t>(static_cast<double>(bytes) *
                                           (fixed + of_row * static_cast<double>(kFewestRows)) / share) +
                          1,
                      " bytes or more"));
    for (size_t t = 0; t < tables.size(); ++t)
      if (plan.pool_of_table[t] < 0 && tables[t].dim == dim)
        plan.pool_of_table[t] = static_cast<int32_t>(plan.pools.size());
    plan.pools.push_back(pool(std::min(fits, std::max(rows, kFewestRows))));
  }
  merge_pools(plan);
  return plan;
}

}  // namespace hctr
