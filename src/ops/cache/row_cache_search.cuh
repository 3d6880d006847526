// Device functions that find a key in a pool of cached rows: half a warp reads the 16 entries of a set in one access.
#pragma once

#include "core/device/launch.cuh"
#include "ops/cache/row_cache_rules.h"

namespace hctr::ops {

__device__ inline void full_fence() { asm volatile("fence.sc.gpu;" ::: "memory"); }

template <class T>
__device__ T volatile_load(const T* at) {
  return *static_cast<const volatile T*>(at);
}

/// The 16 lanes that process one key together.
struct CacheLanes {
  unsigned mask;
  int lane;
  __device__ CacheLanes()
      : mask(threadIdx.x % 32 < kCacheWays ? 0xffffu : 0xffff0000u), lane(threadIdx.x % kCacheWays) {}
  __device__ uint32_t ballot(bool value) const {
    return (__ballot_sync(mask, value) >> (mask == 0xffffu ? 0 : kCacheWays)) & 0xffffu;
  }
  template <class T>
  __device__ T of(T value, int from) const {
    return __shfl_sync(mask, value, from, kCacheWays);
  }
  __device__ void sync() const { __syncwarp(mask); }
};

__device__ inline uint64_t load_entry(const CachePool& pool, uint32_t set, int lane) {
  return volatile_load(pool.entries + int64_t{set} * kCacheWays + lane);
}

__device__ inline CacheHead load_head(const CachePool& pool, uint32_t row) {
  const int4 words = __ldcg(reinterpret_cast<const int4*>(pool.heads + row));
  CacheHead head;
  head.key = static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(words.y)) << 32 |
                                  static_cast<uint32_t>(words.x));
  head.space = words.z;
  head.scale = __int_as_float(words.w);
  return head;
}

/// The entry of a key. way < 0: the key was not found.
struct FoundEntry {
  uint32_t set = 0, row = 0;
  int way = -1;
  float scale = 1;
  bool stale = false;
};

/// Finds the key in one set: compares the row heads of all entries with a matching tag. `entry` is the lane's own
/// entry.
__device__ inline FoundEntry match_in_set(const CachePool& pool, const CacheLanes& lanes, uint64_t entry, uint32_t set,
                                          uint32_t tag, int64_t key, int32_t space) {
  FoundEntry found{.set = set};
  for (uint32_t candidates = lanes.ballot(may_hold(entry, tag)); candidates != 0; candidates &= candidates - 1) {
    const int way = __ffs(static_cast<int>(candidates)) - 1;
    const uint64_t matching = lanes.of(entry, way);
    const uint32_t row = cache_row(matching);
    const CacheHead head = load_head(pool, row);
    if (head.key != key || head.space != space) continue;
    found.row = row;
    found.stale = is_stale(matching);
    found.way = way;
    found.scale = head.scale;
    break;
  }
  return found;
}

/// Searches the following sets. Stops at the first set that has an empty entry.
__device__ inline FoundEntry find_further(const CachePool& pool, const CacheLanes& lanes, const CacheHash& hash,
                                          uint64_t entry, int64_t key, int32_t space) {
  for (uint32_t set = hash.set, visited = 1; visited < pool.sets && lanes.ballot(entry == 0) == 0; ++visited) {
    set = next_set(pool, set);
    entry = load_entry(pool, set, lanes.lane);
    if (const FoundEntry found = match_in_set(pool, lanes, entry, set, hash.tag, key, space); found.way >= 0)
      return found;
  }
  return {};
}

__device__ inline FoundEntry find_key(const CachePool& pool, const CacheLanes& lanes, int64_t key, int32_t space) {
  const CacheHash hash(pool, key, space);
  const uint64_t entry = load_entry(pool, hash.set, lanes.lane);
  const FoundEntry found = match_in_set(pool, lanes, entry, hash.set, hash.tag, key, space);
  return found.way < 0 && pool.whole ? find_further(pool, lanes, hash, entry, key, space) : found;
}

}  // namespace hctr::ops
