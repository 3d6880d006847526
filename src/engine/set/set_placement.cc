#include "engine/set/set_placement.h"

#include <algorithm>
#include <numeric>

#include "engine/set/set_arrays.h"

namespace hctr {
namespace {

using Where = EmbeddingPlacement::Where;

/// The known bytes of the table: those of its rows, or those of its maximum number of rows, whichever is larger. 0 if
/// both numbers of rows are unknown.
double bytes_known(const EmbeddingTableOptions& table) {
  const int64_t bytes = table.format == EmbeddingTableOptions::Format::f32 ? 4 : 2;
  return static_cast<double>(std::max(table.rows, table.most_rows)) * static_cast<double>(table.dim * bytes);
}

void check_place(const EmbeddingTableOptions& table, int ranks) {
  const EmbeddingPlacement& given = table.placement;
  if (given.rank < -1 || given.rank >= ranks)
    refuse_call(
        cat("embedding table '", table.name, "': placement on rank ", given.rank, ", expected 0 to ", ranks - 1));
  if (given.rank >= 0 && given.where != Where::whole)
    refuse_call(cat("embedding table '", table.name, "': placement on rank ", given.rank,
                    " is possible only if `where` is whole: set `where` to whole, or remove the rank"));
  if (given.where == Where::replicated && table.rows == 0)
    refuse_call(cat("embedding table '", table.name,
                    "': a replicated table needs `rows`, the number of its rows; tables without `rows` can be placed "
                    "whole or spread"));
}

Where where_of(const EmbeddingTableOptions& table, double share) {
  if (table.placement.where != Where::automatic) return table.placement.where;
  if (table.most_rows > 0) return Where::whole;
  return table.rows > 0 && bytes_known(table) <= share ? Where::whole : Where::spread;
}

}  // namespace

Placement TablePlace::of_keys(int ranks) const {
  if (replicated()) return {};
  if (spread()) return {ranks, {}};
  return {ranks, {static_cast<int32_t>(owner)}};
}

std::vector<TablePlace> places_of(const EmbeddingOptions& options, int ranks) {
  const size_t count = options.tables.size();
  std::vector<TablePlace> places(count);
  if (ranks == 1) return places;
  double all = 0;
  for (const EmbeddingTableOptions& table : options.tables) {
    check_place(table, ranks);
    all += bytes_known(table);
  }
  std::vector<size_t> largest_first(count);
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t a, size_t b) { return bytes_known(options.tables[a]) > bytes_known(options.tables[b]); });
  std::vector<double> load(static_cast<size_t>(ranks), 0);
  // First place the tables with an assigned rank, so that the tables placed later balance the load.
  for (const size_t t : largest_first) {
    const EmbeddingTableOptions& table = options.tables[t];
    places[t].where = where_of(table, all / ranks);
    if (table.placement.rank < 0) continue;
    places[t].owner = table.placement.rank;
    load[static_cast<size_t>(table.placement.rank)] += bytes_known(table);
  }
  for (const size_t t : largest_first) {
    const EmbeddingTableOptions& table = options.tables[t];
    if (places[t].where != Where::whole || table.placement.rank >= 0) continue;
    const auto least = std::min_element(load.begin(), load.end());
    places[t].owner = static_cast<int>(least - load.begin());
    *least += std::max(bytes_known(table), 1.0);  // at least 1, so that tables of unknown size go to the ranks in turn
  }
  return places;
}

}  // namespace hctr
