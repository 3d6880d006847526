// Device functions that open and close the session of a lookup.
#pragma once

#include "ops/cache/row_cache_search.cuh"

namespace hctr::ops {

/// A thread's counts of misses and defaults.
struct LookupCounts {
  uint32_t misses = 0, defaults = 0;
};

/// Returns the row of a key, or kPlaceDefault or kPlaceMissing. If `complete` is true, a key without an entry has no
/// row.
__device__ inline int32_t place_of(const CacheLookup& lookup, bool complete, const FoundEntry& found) {
  if (found.way >= 0 && !(found.stale && lookup.lists_misses && !lookup.takes_stale))
    return found.scale == found.scale ? static_cast<int32_t>(found.row) : kPlaceDefault;
  return (found.way < 0 && complete) || !lookup.lists_misses ? kPlaceDefault : kPlaceMissing;
}

/// State of the cache when a block opened the session.
struct SeenState {
  uint8_t era;
  bool applying;
};

/// Opens the session. Each block calls begin_session() before its first read of an entry. All blocks store the same
/// epoch and compare with the same generation: a block waits for two accesses to memory and for no other block.
__device__ inline SeenState begin_session(const CacheLookup& lookup) {
  __shared__ uint32_t era, applying;
  if (threadIdx.x == 0) {
    CacheState& state = *lookup.state;
    CacheSession& session = state.sessions[lookup.session];
    *static_cast<volatile unsigned long long*>(&session.epoch) = lookup.epoch;
    // After this fence, one of two cases holds: an update sees this epoch in the session, or this block reads the
    // entries that the update has set.
    full_fence();
    const uint32_t generation = volatile_load(&state.generation);
    era = volatile_load(&state.era);
    applying = volatile_load(&state.applying);
    if (generation % 2 != 0 || generation != lookup.generation) session.mixed = 1;
  }
  __syncthreads();
  return {static_cast<uint8_t>(era), applying != 0};
}

/// Writes the answer as two words, each with the ticket.
__device__ inline void store_answer(CacheAnswer* to, uint32_t ticket, uint32_t misses, uint32_t defaults, bool mixed) {
  const uint64_t upper = static_cast<uint64_t>(ticket) << 32;
  asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(upper | misses),
               "l"(upper | defaults | (mixed ? 0x80000000u : 0u))
               : "memory");
}

/// One thread of each block calls this after the block's last read of entries or rows. Returns true for the last block
/// of the kernel.
__device__ inline bool last_block_ends(CacheSession& session) {
  full_fence();
  if (atomicAdd(&session.blocks, 1u) + 1 < gridDim.x) return false;
  full_fence();
  session.blocks = 0;
  return true;
}

/// Adds the counts of a block, and writes the answer in the last block. Each block calls write_answer() after its last
/// read of an entry. `rows_follow`: a later kernel reads the rows and then calls end_rows(). If `rows_follow` is false
/// and the lookup lists no misses, write_answer() ends the session.
__device__ inline void write_answer(const CacheLookup& lookup, LookupCounts counts, bool rows_follow) {
  __shared__ uint32_t misses, defaults;
  if (threadIdx.x == 0) misses = defaults = 0;
  __syncthreads();
  if (counts.misses) atomicAdd(&misses, counts.misses);
  if (counts.defaults) atomicAdd(&defaults, counts.defaults);
  __syncthreads();  // the fence of thread 0 publishes the block's vectors and listed misses
  if (threadIdx.x != 0) return;
  CacheState& state = *lookup.state;
  CacheSession& session = state.sessions[lookup.session];
  if (!lookup.lists_misses && misses) atomicAdd(&session.misses, misses);
  if (defaults) atomicAdd(&session.defaults, defaults);
  if (!last_block_ends(session)) return;
  const uint32_t all_misses = volatile_load(&session.misses), all_defaults = volatile_load(&session.defaults),
                 mixed = volatile_load(&session.mixed), generation = volatile_load(&state.generation);
  session.mixed = session.defaults = 0;
  if (!rows_follow) {
    session.misses = 0;
    if (all_misses == 0 || !lookup.lists_misses) *static_cast<volatile unsigned long long*>(&session.epoch) = 0;
  }
  __threadfence_system();
  store_answer(lookup.answer, lookup.ticket, all_misses, all_defaults, mixed != 0 || generation != lookup.generation);
}

/// Ends the session of a lookup without listed misses. Each block calls end_rows() after its last read of a row.
__device__ inline void end_rows(const CacheLookup& lookup) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  CacheSession& session = lookup.state->sessions[lookup.session];
  if (!last_block_ends(session)) return;
  const bool ends = volatile_load(&session.misses) == 0 || !lookup.lists_misses;
  session.misses = 0;
  full_fence();
  if (ends) *static_cast<volatile unsigned long long*>(&session.epoch) = 0;
}

}  // namespace hctr::ops
