// Device functions that find the entries of 32 keys of a warp. Each lane has one key. Eight lanes read the 16 entries
// of a set, two entries each. A warp therefore reads the sets of four keys with one load instruction. The loads for all
// 32 keys run concurrently.
#pragma once

#include "ops/cache/row_cache_session.cuh"

namespace hctr::ops {

inline constexpr unsigned kWholeWarp = 0xffffffffu;

/// A lane's key. The constructor reads no memory that changes of the cache modify, so a block may call it before it
/// opens the session.
struct LaneRequest {
  int64_t key = 0, at = 0;  // at: index among the keys of all parts
  int32_t part = 0;
  bool asked = false;  ///< false: the lane has no key

  LaneRequest() = default;
  /// Reads key `index` of a lookup, which belongs to part p.
  __device__ LaneRequest(const CacheLookup& lookup, int32_t p, int64_t index, bool is_asked)
      : at(index), part(p), asked(is_asked) {
    const CachePart& of = lookup.part(p);
    key = __ldcs(of.keys + (index - of.first_key));
  }
};

/// A lane's key and the fields of the key's pool.
struct LaneKey : LaneRequest {
  int32_t space = 0;
  bool whole = false;
  bool complete = false;  ///< true: a key without an entry has no row
  uint32_t sets = 0;
  uint64_t* entries = nullptr;
  uint8_t* used = nullptr;
  CacheHead* heads = nullptr;

  __device__ LaneKey(const CacheLookup& lookup, const LaneRequest& request, bool applying) : LaneRequest(request) {
    const CachePart& of = lookup.part(part);
    const CachePool& pool = lookup.pools[of.pool];
    space = of.space;
    whole = pool.whole, complete = whole && !applying, sets = pool.sets;
    entries = pool.entries, used = pool.used, heads = pool.heads;
  }
  __device__ CachePool pool() const {
    return {.entries = entries, .used = used, .heads = heads, .sets = sets, .whole = whole};
  }
};

/// Two adjacent entries of a set.
struct TwoEntries {
  uint64_t first, second;
};

__device__ inline TwoEntries load_two_entries(const uint64_t* at) {
  TwoEntries two;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(two.first), "=l"(two.second)
               : "l"(__cvta_generic_to_global(at)));
  return two;
}

struct FoundByLane {
  FoundEntry entry;
  uint8_t used = 0;  ///< the value of CachePool::used if the key was found
};

/// Searches for one key with a single lane, in all sets that may contain the key.
__device__ __noinline__ FoundByLane find_alone(const CachePool pool, int64_t key, int32_t space) {
  const CacheHash hash(pool, key, space);
  uint32_t set = hash.set;
  for (uint32_t visited = 0; visited < pool.sets; ++visited, set = next_set(pool, set)) {
    bool has_empty = false;
#pragma unroll 1
    for (int way = 0; way < kCacheWays; ++way) {
      const uint64_t entry = load_entry(pool, set, way);
      has_empty |= entry == 0;
      if (!may_hold(entry, hash.tag)) continue;
      const CacheHead head = load_head(pool, cache_row(entry));
      if (head.key != key || head.space != space) continue;
      return {{set, cache_row(entry), way, head.scale, is_stale(entry)}, pool.used[int64_t{set} * kCacheWays + way]};
    }
    if (!pool.whole || has_empty) break;
  }
  return {};
}

/// Finds the keys of all lanes. Call from all lanes of a warp.
__device__ inline FoundByLane find_by_lane(const LaneKey& of) {
  constexpr int kLanesOfSet = kCacheWays / 2, kSetsOfLoad = 32 / kLanesOfSet, kLoads = 32 / kSetsOfLoad;
  const CachePool pool = of.pool();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const CacheHash hash(pool, of.key, of.space);
  const auto own_set = reinterpret_cast<unsigned long long>(pool.entries + int64_t{hash.set} * kCacheWays);
  TwoEntries two[kLoads];
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const auto set = __shfl_sync(kWholeWarp, own_set, load * kSetsOfLoad + lane / kLanesOfSet);
    two[load] = load_two_entries(reinterpret_cast<const uint64_t*>(set) + lane % kLanesOfSet * 2);
  }
  uint32_t low = 0;  // the lower half of the key's entry
  int way = -1;
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const uint32_t tag = __shfl_sync(kWholeWarp, hash.tag, load * kSetsOfLoad + lane / kLanesOfSet);
    const bool may_first = may_hold(two[load].first, tag), may_second = may_hold(two[load].second, tag);
    const uint32_t first = __ballot_sync(kWholeWarp, may_first), second = __ballot_sync(kWholeWarp, may_second);
    // The lanes that own the four keys of this load read the entry from the first lane whose entry matches.
    const int shift = lane % kSetsOfLoad * kLanesOfSet;
    const uint32_t own_first = first >> shift & 0xffu, own_second = second >> shift & 0xffu;
    const int from = max(__ffs(static_cast<int>(own_first | own_second)) - 1, 0);
    const uint32_t found =
        __shfl_sync(kWholeWarp, static_cast<uint32_t>(may_first ? two[load].first : two[load].second), shift + from);
    const bool is_own = lane / kSetsOfLoad == load && (own_first | own_second) != 0;
    low = is_own ? found : low;
    way = is_own ? 2 * from + ((own_first >> from & 1u) == 0) : way;
  }
  FoundByLane found;
  if (!of.asked) return found;
  if (way >= 0) {
    // This load may hit in L1: an outdated value only causes or omits one store to `used`.
    found.used = __ldca(pool.used + int64_t{hash.set} * kCacheWays + way);
    const CacheHead head = load_head(pool, cache_row(low));
    if (head.key == of.key && head.space == of.space) {
      found.entry = {hash.set, cache_row(low), way, head.scale, is_stale(low)};
      return found;
    }
  }
  // Another key has the same tag, or a pool without eviction may have the key in a later set.
  return way >= 0 || pool.whole ? find_alone(pool, of.key, of.space) : found;
}

/// Returns the item of key `at` of a part.
__device__ inline int64_t item_of_key(const CacheLookup& lookup, int32_t p, int64_t at) {
  const CachePart& part = lookup.part(p);
  const int64_t key = at - part.first_key;
  if (!part.offsets) return part.first_item + key;
  int64_t low = 0, high = (p + 1 < lookup.part_count ? lookup.part(p + 1).first_item : lookup.items) - part.first_item;
  while (low + 1 < high) {  // offsets[low] <= key < offsets[high]
    const int64_t middle = (low + high) / 2;
    (part.offsets[middle] <= key ? low : high) = middle;
  }
  return part.first_item + low;
}

/// Marks the entries of the lanes' keys as used, updates `counts`, and lists missing keys. Returns the place of the
/// lane's key. Call from all lanes of a warp.
__device__ inline int32_t note_by_lane(const CacheLookup& lookup, const LaneKey& of, const FoundByLane& found,
                                       uint8_t era, LookupCounts& counts) {
  const FoundEntry& entry = found.entry;
  const int32_t place = place_of(lookup, of.complete, entry);
  if (entry.way >= 0 && found.used != era) of.used[int64_t{entry.set} * kCacheWays + entry.way] = era;
  if (of.asked) {
    counts.defaults += place == kPlaceDefault;
    counts.misses += entry.way < 0 && !of.complete;
  }
  const unsigned missing = __ballot_sync(kWholeWarp, of.asked && place == kPlaceMissing);
  if (missing == 0) return place;
  const unsigned lane = threadIdx.x % 32;
  const int leader = __ffs(static_cast<int>(missing)) - 1;
  uint32_t first = 0;
  if (static_cast<int>(lane) == leader)
    first = atomicAdd(&lookup.state->sessions[lookup.session].misses, static_cast<uint32_t>(__popc(missing)));
  first = __shfl_sync(kWholeWarp, first, leader);
  if (missing >> lane & 1u)
    lookup.misses[first + static_cast<uint32_t>(__popc(missing & ((1u << lane) - 1)))] = {
        of.key, item_of_key(lookup, of.part, of.at), of.part, static_cast<int32_t>(of.at)};
  return place;
}

}  // namespace hctr::ops
