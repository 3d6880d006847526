// CPU reference of the row cache: one thread runs the same lookups and changes as the kernels.
#include "ops/cache/row_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/expect.h"
#include "ops/cache/row_cache_rules.h"

namespace hctr::ops {

void cache_lookup(Context& ctx, const CacheLookup& lookup) {
  HCTR_EXPECT(lookup.session >= 0 && lookup.session < kCacheSessions, "session ", lookup.session);
  HCTR_ON_DEVICE(ctx, cache_lookup(ctx, lookup));
}
void cache_fill(Context& ctx, const CacheLookup& lookup, const CacheFill& fill) {
  HCTR_ON_DEVICE(ctx, cache_fill(ctx, lookup, fill));
}
void cache_leave(Context& ctx, CacheState* state, int32_t session) {
  HCTR_ON_DEVICE(ctx, cache_leave(ctx, state, session));
}
void cache_write(Context& ctx, const CachePool& pool, const CacheChange& change) {
  HCTR_ON_DEVICE(ctx, cache_write(ctx, pool, change));
}
void cache_set(Context& ctx, const CachePool& pool, const CacheState* state, const CacheChange& change) {
  HCTR_ON_DEVICE(ctx, cache_set(ctx, pool, state, change));
}
void cache_mark(Context& ctx, const CachePool& pool, const CacheChange& change) {
  HCTR_ON_DEVICE(ctx, cache_mark(ctx, pool, change));
}
void cache_remove(Context& ctx, const CachePool& pool, const CacheChange& change) {
  HCTR_ON_DEVICE(ctx, cache_remove(ctx, pool, change));
}
void cache_begin_update(Context& ctx, CacheState* state) { HCTR_ON_DEVICE(ctx, cache_begin_update(ctx, state)); }
void cache_end_update(Context& ctx, CacheState* state) { HCTR_ON_DEVICE(ctx, cache_end_update(ctx, state)); }
void cache_set_applying(Context& ctx, CacheState* state, bool applying) {
  HCTR_ON_DEVICE(ctx, cache_set_applying(ctx, state, applying));
}
void cache_next_epoch(Context& ctx, CacheState* state) { HCTR_ON_DEVICE(ctx, cache_next_epoch(ctx, state)); }
void cache_reclaim(Context& ctx, const CachePool& pool) { HCTR_ON_DEVICE(ctx, cache_reclaim(ctx, pool)); }
void cache_set_era(Context& ctx, CacheState* state, uint32_t era) {
  HCTR_ON_DEVICE(ctx, cache_set_era(ctx, state, era));
}
void cache_clear(Context& ctx, const CachePool& pool) {
  HCTR_EXPECT(pool.sets > 0 && pool.row_bytes % 16 == 0, pool.sets, " sets, rows of ", pool.row_bytes, " bytes");
  HCTR_ON_DEVICE(ctx, cache_clear(ctx, pool));
}
void cache_list(Context& ctx, const CachePool& pool, CacheListed* listed, uint32_t* count) {
  HCTR_ON_DEVICE(ctx, cache_list(ctx, pool, listed, count));
}

namespace cpu {
namespace {

uint64_t* entry_of(const CachePool& pool, int64_t key, int32_t space) {
  const CacheHash hash(pool, key, space);
  for (uint32_t set = hash.set, visited = 0; visited < pool.sets; set = next_set(pool, set), ++visited) {
    uint64_t* const ways = pool.entries + int64_t{set} * kCacheWays;
    for (int way = 0; way < kCacheWays; ++way) {
      if (!may_hold(ways[way], hash.tag)) continue;
      const CacheHead& head = pool.heads[cache_row(ways[way])];
      if (head.key == key && head.space == space) return ways + way;
    }
    if (!pool.whole || std::find(ways, ways + kCacheWays, uint64_t{0}) != ways + kCacheWays) break;
  }
  return nullptr;
}

/// Returns the entry for a new key, or null if every way is occupied.
uint64_t* entry_for_new(const CachePool& pool, const CacheHash& hash, uint32_t era) {
  for (uint32_t set = hash.set, visited = 0; visited < pool.sets; set = next_set(pool, set), ++visited) {
    uint64_t* const ways = pool.entries + int64_t{set} * kCacheWays;
    for (int way = 0; way < kCacheWays; ++way)
      if (!holds_key(ways[way])) return ways + way;
    if (pool.whole) continue;
    const uint8_t* const used = pool.used + int64_t{set} * kCacheWays;
    int oldest = 0;
    for (int way = 1; way < kCacheWays; ++way)
      if (age_of(era, used[way]) > age_of(era, used[oldest])) oldest = way;
    return ways + oldest;
  }
  return nullptr;
}

/// Adds one row to the pooled vector `to`, or copies the row to `to` if the part has one vector per key. `place`
/// selects a row of the pool, an element of fill->found, or the default value.
void add_row(const CachePool& pool, const CachePart& part, int32_t place, const CacheFill* fill, float* to) {
  const CacheHead* const head = place >= 0 ? &pool.heads[place] : nullptr;
  const int64_t first = place <= kPlaceFilled ? fill->found[kPlaceFilled - place].first : -1;
  for (int64_t i = 0; i < pool.dim; ++i) {
    float element = part.default_value;
    if (head && head->scale == head->scale)
      element = cached_element(pool.type, pool.rows + int64_t{place} * pool.row_bytes, i, head->scale);
    else if (first >= 0)
      element = fill->values[first + i];
    to[i] = part.offsets ? to[i] + element : element;
  }
}

/// Writes the vector of one bag. places[i] is the row of the bag's key i.
void write_bag(const CacheLookup& lookup, const CachePart& part, const CacheBag& bag, int64_t item,
               const int32_t* places, const CacheFill* fill) {
  const CachePool& pool = lookup.pools[part.pool];
  float* const to = part.out + (item - part.first_item) * part.stride;
  std::fill_n(to, pool.dim, 0.0f);
  for (int64_t at = bag.begin; at < bag.end; ++at) add_row(pool, part, places[at - bag.begin], fill, to);
  if (!part.offsets) return;
  const float weight = weight_of_bag(part.combiner, bag.end - bag.begin);
  for (int64_t i = 0; i < pool.dim; ++i) to[i] *= weight;
}

void begin_session(const CacheState& state, CacheSession& session) {
  if (session.epoch == 0) session.epoch = state.epoch;
}

void take_row(const CachePool& pool, const CacheChange& change, int64_t i) {
  change.taken[i] = 0;
  if (change.only_present && !entry_of(pool, change.keys[i], change.space_of(i))) return;
  if (pool.counts->free_rows == 0) {
    ++pool.counts->refused;
    return;
  }
  const uint32_t row = pool.free[--pool.counts->free_rows];
  change.taken[i] = row + 1;
  std::byte* const to = pool.rows + int64_t{row} * pool.row_bytes;
  CacheHead& head = pool.heads[row];
  head = {change.keys[i], change.space_of(i), std::numeric_limits<float>::quiet_NaN()};
  if (change.is_absent(i)) return;
  const float* const from = change.rows + i * pool.dim;
  float largest = 0;
  for (int64_t d = 0; d < pool.dim; ++d) largest = std::max(largest, std::abs(from[d]));
  head.scale = cache_scale(pool.type, largest);
  for (int64_t d = 0; d < pool.dim; ++d) store_cached(pool.type, to, d, from[d], head.scale);
}

}  // namespace

void cache_lookup(Context&, const CacheLookup& lookup) {
  CacheState& state = *lookup.state;
  CacheSession& session = state.sessions[lookup.session];
  begin_session(state, session);
  CacheAnswer answer{.misses = 0,
                     .ticket = lookup.ticket,
                     .defaults = 0,
                     .mixed = state.generation & 1,
                     .ticket_again = lookup.ticket};
  std::vector<int32_t> places;
  for (int64_t item = 0; item < lookup.items; ++item) {
    const int32_t p = part_of_item(lookup, item);
    const CachePart& part = lookup.part(p);
    const CachePool& pool = lookup.pools[part.pool];
    const CacheBag bag(part, item);
    places.clear();
    for (int64_t at = bag.begin; at < bag.end; ++at) {
      const uint64_t* const entry = entry_of(pool, part.keys[at - part.first_key], part.space);
      int32_t place = kPlaceDefault;
      const bool complete = pool.whole && state.applying == 0;
      const bool misses =
          lookup.lists_misses ? (entry ? is_stale(*entry) && !lookup.takes_stale : !complete) : !entry && !complete;
      if (entry) {
        place = static_cast<int32_t>(cache_row(*entry));
        pool.used[entry - pool.entries] = static_cast<uint8_t>(state.era);
        const float scale = pool.heads[place].scale;
        if (scale != scale) place = kPlaceDefault;
      }
      if (misses && lookup.lists_misses) {
        place = kPlaceMissing;
        lookup.misses[answer.misses] = {part.keys[at - part.first_key], item, p, static_cast<int32_t>(at)};
      }
      answer.misses += misses;
      if (place == kPlaceDefault) ++answer.defaults;
      if (part.offsets) lookup.places[at] = place;
      places.push_back(place);
    }
    write_bag(lookup, part, bag, item, places.data(), nullptr);
  }
  if (answer.misses == 0 || !lookup.lists_misses) session.epoch = 0;
  *lookup.answer = answer;
}

void cache_fill(Context& ctx, const CacheLookup& lookup, const CacheFill& fill) {
  for (int64_t i = fill.found_first; i < fill.found_count; ++i) {
    const CacheFound& found = fill.found[i];
    const CachePart& part = lookup.part(found.part);
    const auto place = static_cast<int32_t>(kPlaceFilled - i);
    if (part.offsets) {
      lookup.places[found.at] = place;
      continue;
    }
    const int64_t item = part.first_item + found.at - part.first_key;
    write_bag(lookup, part, CacheBag(part, item), item, &place, &fill);
  }
  for (int64_t i = 0; i < fill.bag_count; ++i) {
    const CachePart& part = lookup.part(part_of_item(lookup, fill.bags[i]));
    const CacheBag bag(part, fill.bags[i]);
    write_bag(lookup, part, bag, fill.bags[i], lookup.places + bag.begin, &fill);
  }
  if (fill.ends) cpu::cache_leave(ctx, lookup.state, lookup.session);
}

void cache_leave(Context&, CacheState* state, int32_t session) { state->sessions[session].epoch = 0; }

void cache_write(Context&, const CachePool& pool, const CacheChange& change) {
  for (int64_t i = 0; i < change.count; ++i) take_row(pool, change, i);
}

void cache_set(Context&, const CachePool& pool, const CacheState* state, const CacheChange& change) {
  for (int64_t i = 0; i < change.count; ++i) {
    if (change.taken[i] == 0) continue;
    const CacheHash hash(pool, change.keys[i], change.space_of(i));
    const uint32_t row = change.taken[i] - 1;
    uint64_t* entry = entry_of(pool, change.keys[i], change.space_of(i));
    const bool is_new = !entry;
    if (!entry) entry = change.only_present ? nullptr : entry_for_new(pool, hash, state->era);
    if (!entry) {
      ++pool.counts->refused;
      pool.retired[pool.counts->retired++] = row;
      continue;
    }
    if (holds_key(*entry)) {
      pool.retired[pool.counts->retired++] = cache_row(*entry);
      pool.counts->evicted += is_new;
    } else {
      ++pool.counts->keys;
    }
    *entry = cache_entry(hash.tag, row);
    if (is_new) pool.used[entry - pool.entries] = static_cast<uint8_t>(state->era);
  }
}

void cache_mark(Context&, const CachePool& pool, const CacheChange& change) {
  for (int64_t i = 0; i < change.count; ++i)
    if (uint64_t* const entry = entry_of(pool, change.keys[i], change.space_of(i))) *entry |= kCacheStale;
}

void cache_remove(Context&, const CachePool& pool, const CacheChange& change) {
  for (int64_t i = 0; i < change.count; ++i) {
    uint64_t* const entry = entry_of(pool, change.keys[i], change.space_of(i));
    if (!entry) continue;
    pool.retired[pool.counts->retired++] = cache_row(*entry);
    *entry = pool.whole ? kCacheGone : 0;
    --pool.counts->keys;
  }
}

void cache_begin_update(Context&, CacheState* state) { ++state->generation; }
void cache_end_update(Context&, CacheState* state) { ++state->generation; }
void cache_set_applying(Context&, CacheState* state, bool applying) { state->applying = applying; }
void cache_next_epoch(Context&, CacheState* state) { ++state->epoch; }

void cache_reclaim(Context&, const CachePool& pool) {
  CacheCounts& counts = *pool.counts;
  std::copy_n(pool.retired, counts.retired, pool.free + counts.free_rows);
  counts.free_rows += counts.retired;
  counts.retired = 0;
}

void cache_set_era(Context&, CacheState* state, uint32_t era) { state->era = era; }

void cache_clear(Context&, const CachePool& pool) {
  for (uint32_t i = 0; i < pool.row_capacity; ++i) pool.free[i] = pool.row_capacity - 1 - i;
  *pool.counts = {.free_rows = pool.row_capacity, .retired = 0, .refused = 0, .evicted = 0, .keys = 0};
}

void cache_list(Context&, const CachePool& pool, CacheListed* listed, uint32_t* count) {
  *count = 0;
  for (int64_t e = 0; e < int64_t{pool.sets} * kCacheWays; ++e)
    if (const uint64_t entry = pool.entries[e]; holds_key(entry))
      listed[(*count)++] = {pool.heads[cache_row(entry)], pool.used[e], cache_row(entry)};
}

}  // namespace cpu
}  // namespace hctr::ops
