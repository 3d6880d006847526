#include <algorithm>

#include "core/base/expect.h"
#include "store/bound_version.h"

namespace hctr {
namespace {

constexpr int64_t kFewestRows = 1024;

}  // namespace

CachePlan plan_cache(std::span<const CachePlan::Table> tables, ops::CachedType type, int64_t bytes,
                     int64_t rows_of_change) {
  const auto whole_pool = [&](const CachePlan::Table& table) {
    // Reserves a quarter more rows than the table has, for keys that updates add.
    return CachePoolOptions{static_cast<int32_t>(table.dim), type, table.rows + table.rows / 4 + kFewestRows, true};
  };
  const auto bytes_of = [&](const CachePoolOptions& pool) { return DeviceCache::bytes_of(pool, rows_of_change); };
  struct Candidate {
    size_t table;
    int64_t bytes;
  };
  std::vector<Candidate> by_size;
  int64_t all = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    by_size.push_back({t, bytes_of(whole_pool(tables[t]))});
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
    plan.pools.push_back(whole_pool(tables[one.table]));
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
  return plan;
}

}  // namespace hctr
