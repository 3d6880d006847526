// Kernels that change a row cache: half a warp writes a row, finds the set of the row's key and sets the key's entry.
#include "core/device/copy_bytes.h"
#include "ops/cache/row_cache_search.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

/// Pops a row from the free stack. Returns the row's number + 1, or 0 if the stack is empty. Each thread decrements the
/// counter once, even below zero, and increments it again if no row was left. A compare-and-swap loop would take
/// milliseconds if thousands of threads used the same counter.
__device__ uint32_t take_free_row(const CachePool& pool) {
  auto* const free_rows = reinterpret_cast<int*>(&pool.counts->free_rows);
  const int left = atomicSub(free_rows, 1);
  if (left > 0) return volatile_load(pool.free + left - 1) + 1;
  atomicAdd(free_rows, 1);
  atomicAdd(&pool.counts->refused, 1u);
  return 0;
}

__global__ void cache_write_kernel(CachePool pool, CacheChange change) {
  const CacheLanes lanes;
  for (int64_t n = thread_index() / kCacheWays; n < change.count; n += thread_count() / kCacheWays) {
    const int64_t key = change.keys[n];
    const int32_t space = change.space_of(n);
    const bool wanted = !change.only_present || find_key(pool, lanes, key, space).way >= 0;
    const uint32_t taken = lanes.of(wanted && lanes.lane == 0 ? take_free_row(pool) : 0u, 0);
    if (lanes.lane == 0) change.taken[n] = taken;
    if (taken == 0) continue;
    const bool absent = change.is_absent(n);
    const float* const from = change.rows + n * pool.dim;
    float largest = 0;
    if (!absent && bytes_of(pool.type) == 1) {
      for (int64_t i = lanes.lane; i < pool.dim; i += kCacheWays) largest = fmaxf(largest, fabsf(from[i]));
      for (int distance = kCacheWays / 2; distance > 0; distance /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(lanes.mask, largest, distance, kCacheWays));
    }
    const float scale = absent ? __int_as_float(0x7fc00000) : cache_scale(pool.type, largest);
    std::byte* const to = pool.rows + int64_t{taken - 1} * pool.row_bytes;
    if (!absent)
      for (int64_t i = lanes.lane; i < pool.dim; i += kCacheWays) store_cached(pool.type, to, i, from[i], scale);
    if (lanes.lane == 0) pool.heads[taken - 1] = {key, space, scale};
  }
}

/// Acquires the spin lock of a set for the 16 lanes.
__device__ void lock_set(const CachePool& pool, uint32_t set, const CacheLanes& lanes) {
  if (lanes.lane == 0) {
    while (atomicCAS(pool.locks + set, 0u, 1u) != 0u) __nanosleep(50);
    __threadfence();
  }
  lanes.sync();
}
__device__ void unlock_set(const CachePool& pool, uint32_t set, const CacheLanes& lanes) {
  lanes.sync();
  if (lanes.lane == 0) {
    __threadfence();
    atomicExch(pool.locks + set, 0u);
  }
  lanes.sync();
}

__device__ void retire(const CachePool& pool, uint32_t row) {
  pool.retired[atomicAdd(&pool.counts->retired, 1u)] = row;
}

/// Returns the way of a set for a new key: an unused way, or the least recently used one. Returns -1 for a full set of
/// a pool with `whole`.
__device__ int way_for_new(const CachePool& pool, uint32_t set, uint64_t entry, uint8_t era, const CacheLanes& lanes) {
  if (const uint32_t unused = lanes.ballot(!holds_key(entry)); unused != 0) return __ffs(static_cast<int>(unused)) - 1;
  if (pool.whole) return -1;
  uint32_t best = age_of(era, volatile_load(pool.used + int64_t{set} * kCacheWays + lanes.lane)) << 8 |
                  static_cast<uint32_t>(kCacheWays - 1 - lanes.lane);
  for (int distance = kCacheWays / 2; distance > 0; distance /= 2)
    best = max(best, __shfl_xor_sync(lanes.mask, best, distance, kCacheWays));
  return kCacheWays - 1 - static_cast<int>(best & 0xffu);
}

/// Sets an entry of a locked set and retires the entry's old row. Call from all 16 lanes; `entry` is the lane's own
/// entry.
__device__ void set_way(const CachePool& pool, uint32_t set, int way, uint64_t entry, uint64_t value, bool is_new,
                        uint8_t era, const CacheLanes& lanes) {
  if (lanes.lane == way) {
    if (holds_key(entry)) {
      retire(pool, cache_row(entry));
      if (is_new) atomicAdd(&pool.counts->evicted, 1u);
    } else {
      atomicAdd(&pool.counts->keys, 1u);
    }
    if (is_new) pool.used[int64_t{set} * kCacheWays + way] = era;
    *static_cast<volatile uint64_t*>(pool.entries + int64_t{set} * kCacheWays + way) = value;
  }
}

__global__ void cache_set_kernel(CachePool pool, const CacheState* state, CacheChange change) {
  const CacheLanes lanes;
  const auto era = static_cast<uint8_t>(state->era);
  for (int64_t n = thread_index() / kCacheWays; n < change.count; n += thread_count() / kCacheWays) {
    const uint32_t taken = change.taken[n];
    if (taken == 0) continue;
    const int64_t key = change.keys[n];
    const int32_t space = change.space_of(n);
    const CacheHash hash(pool, key, space);
    const uint64_t value = cache_entry(hash.tag, taken - 1);
    // In a pool with `whole` set, the key may be in a later set. No other half-warp changes the entry of this key.
    bool done = false;
    if (pool.whole)
      if (const FoundEntry found = find_key(pool, lanes, key, space); found.way >= 0) {
        set_way(pool, found.set, found.way, load_entry(pool, found.set, lanes.lane), value, false, era, lanes);
        done = true;
      }
    for (uint32_t set = hash.set, visited = 0; !done && visited < pool.sets; set = next_set(pool, set)) {
      lock_set(pool, set, lanes);
      const uint64_t entry = load_entry(pool, set, lanes.lane);
      const FoundEntry found = match_in_set(pool, lanes, entry, set, hash.tag, key, space);
      const bool is_new = found.way < 0;
      const int way = !is_new ? found.way : change.only_present ? -1 : way_for_new(pool, set, entry, era, lanes);
      if (way >= 0) set_way(pool, set, way, entry, value, is_new, era, lanes);
      done = way >= 0;
      unlock_set(pool, set, lanes);
      ++visited;
      if (!pool.whole) break;
    }
    if (!done && lanes.lane == 0) {
      atomicAdd(&pool.counts->refused, 1u);
      retire(pool, taken - 1);
    }
    lanes.sync();
  }
}

__global__ void cache_mark_kernel(CachePool pool, CacheChange change) {
  const CacheLanes lanes;
  for (int64_t n = thread_index() / kCacheWays; n < change.count; n += thread_count() / kCacheWays) {
    const int64_t key = change.keys[n];
    const int32_t space = change.space_of(n);
    const FoundEntry found = find_key(pool, lanes, key, space);
    if (found.way < 0 || lanes.lane != 0) continue;
    *static_cast<volatile uint64_t*>(pool.entries + int64_t{found.set} * kCacheWays + found.way) =
        cache_entry(CacheHash(pool, key, space).tag, found.row) | kCacheStale;
  }
}

__global__ void cache_remove_kernel(CachePool pool, CacheChange change) {
  const CacheLanes lanes;
  for (int64_t n = thread_index() / kCacheWays; n < change.count; n += thread_count() / kCacheWays) {
    const FoundEntry found = find_key(pool, lanes, change.keys[n], change.space_of(n));
    if (found.way < 0 || lanes.lane != 0) continue;
    retire(pool, found.row);
    *static_cast<volatile uint64_t*>(pool.entries + int64_t{found.set} * kCacheWays + found.way) =
        pool.whole ? kCacheGone : 0;
    atomicSub(&pool.counts->keys, 1u);
  }
}

__global__ void cache_begin_update_kernel(CacheState* state) {
  *static_cast<volatile uint32_t*>(&state->generation) = state->generation + 1;
  full_fence();
}

__global__ void cache_end_update_kernel(CacheState* state) {
  full_fence();
  *static_cast<volatile uint32_t*>(&state->generation) = state->generation + 1;
}

__global__ void cache_set_applying_kernel(CacheState* state, uint32_t applying) {
  full_fence();
  *static_cast<volatile uint32_t*>(&state->applying) = applying;
}

__global__ void cache_next_epoch_kernel(CacheState* state) {
  full_fence();
  *static_cast<volatile unsigned long long*>(&state->epoch) = state->epoch + 1;
  full_fence();  // after this fence, later readers of the sessions see every lookup that may read old entries
}

__global__ void cache_reclaim_kernel(CachePool pool) {
  const uint32_t free_rows = pool.counts->free_rows, retired = pool.counts->retired;
  for (int64_t i = thread_index(); i < retired; i += thread_count()) pool.free[free_rows + i] = pool.retired[i];
}
__global__ void cache_reclaimed_kernel(CacheCounts* counts) {
  counts->free_rows += counts->retired;
  counts->retired = 0;
}

__global__ void cache_set_era_kernel(CacheState* state, uint32_t era) {
  *static_cast<volatile uint32_t*>(&state->era) = era;
}

__global__ void cache_clear_kernel(CachePool pool) {
  for (int64_t i = thread_index(); i < pool.row_capacity; i += thread_count())
    pool.free[i] = pool.row_capacity - 1 - static_cast<uint32_t>(i);
  if (thread_index() == 0) *pool.counts = {pool.row_capacity, 0, 0, 0, 0};
}

__global__ void cache_list_kernel(CachePool pool, CacheListed* listed, uint32_t* count) {
  for (int64_t e = thread_index(); e < int64_t{pool.sets} * kCacheWays; e += thread_count())
    if (const uint64_t entry = pool.entries[e]; holds_key(entry))
      listed[atomicAdd(count, 1u)] = {pool.heads[cache_row(entry)], pool.used[e], cache_row(entry)};
}

}  // namespace

namespace cuda {

void cache_write(Context& ctx, const CachePool& pool, const CacheChange& change) {
  launch(ctx, "cache_write", grid_for(change.count * kCacheWays), cache_write_kernel, pool, change);
}

void cache_set(Context& ctx, const CachePool& pool, const CacheState* state, const CacheChange& change) {
  launch(ctx, "cache_set", grid_for(change.count * kCacheWays), cache_set_kernel, pool, state, change);
}

void cache_mark(Context& ctx, const CachePool& pool, const CacheChange& change) {
  launch(ctx, "cache_mark", grid_for(change.count * kCacheWays), cache_mark_kernel, pool, change);
}

void cache_remove(Context& ctx, const CachePool& pool, const CacheChange& change) {
  launch(ctx, "cache_remove", grid_for(change.count * kCacheWays), cache_remove_kernel, pool, change);
}

void cache_begin_update(Context& ctx, CacheState* state) {
  launch(ctx, "cache_begin_update", {1, 1}, cache_begin_update_kernel, state);
}

void cache_end_update(Context& ctx, CacheState* state) {
  launch(ctx, "cache_end_update", {1, 1}, cache_end_update_kernel, state);
}

void cache_set_applying(Context& ctx, CacheState* state, bool applying) {
  launch(ctx, "cache_set_applying", {1, 1}, cache_set_applying_kernel, state, applying);
}

void cache_next_epoch(Context& ctx, CacheState* state) {
  launch(ctx, "cache_next_epoch", {1, 1}, cache_next_epoch_kernel, state);
}

void cache_reclaim(Context& ctx, const CachePool& pool) {
  // Few rows are retired, but the host does not know how many, so it limits the number of threads.
  constexpr int64_t kMostThreads = 1 << 16;
  launch(ctx, "cache_reclaim", grid_for(std::min<int64_t>(pool.row_capacity, kMostThreads)), cache_reclaim_kernel,
         pool);
  launch(ctx, "cache_reclaimed", {1, 1}, cache_reclaimed_kernel, pool.counts);
}

void cache_set_era(Context& ctx, CacheState* state, uint32_t era) {
  launch(ctx, "cache_set_era", {1, 1}, cache_set_era_kernel, state, era);
}

void cache_clear(Context& ctx, const CachePool& pool) {
  launch(ctx, "cache_clear", grid_for(pool.row_capacity), cache_clear_kernel, pool);
}

void cache_list(Context& ctx, const CachePool& pool, CacheListed* listed, uint32_t* count) {
  zero_bytes(ctx.stream(), count, sizeof *count);
  launch(ctx, "cache_list", grid_for(int64_t{pool.sets} * kCacheWays), cache_list_kernel, pool, listed, count);
}

}  // namespace cuda
}  // namespace hctr::ops
