// Row cache lookups. Half a warp looks up a key: its 16 lanes read the 16 entries of a set, then the row. A half-warp
// processes kAtOnce keys at a time, so that loads of entries, heads and rows overlap.
//
// Rows and heads are read from L2 and bypass L1. An L1 line could still contain the old values of a row that was
// retired and reused while the kernel ran. The address of a row depends on the entry, so the entry is loaded before the
// row. Writers order their stores with a fence.
#include "ops/cache/row_cache_search.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

constexpr int kThreads = 256, kAtOnce = 4;
constexpr int kElements = 4;  // elements that a lane loads in one pass over a row
constexpr int kPassElements = kCacheWays * kElements;

__device__ float4 four_elements(CachedType type, const std::byte* from) {
  return {cached_element(type, from, 0, 1.0f), cached_element(type, from, 1, 1.0f), cached_element(type, from, 2, 1.0f),
          cached_element(type, from, 3, 1.0f)};
}

/// Loads elements [i, i + 4) of a row. Elements beyond `dim` are padding.
template <bool kOnlyF32>
__device__ float4 load_elements(const CachePool& pool, uint32_t row, int64_t i, float scale) {
  const std::byte* const at = pool.rows + int64_t{row} * pool.row_bytes + i * (kOnlyF32 ? 4 : bytes_of(pool.type));
  if constexpr (kOnlyF32) return __ldcg(reinterpret_cast<const float4*>(at));
  switch (pool.type) {
    case CachedType::f32:
      return __ldcg(reinterpret_cast<const float4*>(at));
    case CachedType::f16:
    case CachedType::bf16: {
      const uint2 words = __ldcg(reinterpret_cast<const uint2*>(at));
      return four_elements(pool.type, reinterpret_cast<const std::byte*>(&words));
    }
    default: {
      const uint32_t word = __ldcg(reinterpret_cast<const uint32_t*>(at));
      const float4 codes = four_elements(pool.type, reinterpret_cast<const std::byte*>(&word));
      // Prevents an FMA with the following sum: the CPU rounds this product.
      return {__fmul_rn(codes.x, scale), __fmul_rn(codes.y, scale), __fmul_rn(codes.z, scale),
              __fmul_rn(codes.w, scale)};
    }
  }
}

__device__ void store_elements(float* to, int64_t i, int64_t dim, float4 values) {
  if (i + kElements <= dim && reinterpret_cast<uintptr_t>(to + i) % 16 == 0) {
    *reinterpret_cast<float4*>(to + i) = values;
    return;
  }
  const float list[kElements] = {values.x, values.y, values.z, values.w};
  for (int e = 0; e < kElements && i + e < dim; ++e) to[i + e] = list[e];
}

__device__ void add(float4& sum, float4 value) {
  sum.x += value.x, sum.y += value.y, sum.z += value.z, sum.w += value.w;
}
__device__ float4 scaled(float4 value, float by) { return {value.x * by, value.y * by, value.z * by, value.w * by}; }
__device__ float4 all_equal(float value) { return {value, value, value, value}; }

/// A thread's counts of misses and defaults.
struct LookupCounts {
  uint32_t misses = 0, defaults = 0;
};

/// Returns the row of a key, or kPlaceDefault or kPlaceMissing.
__device__ int32_t place_of(const CacheLookup& lookup, const CachePool& pool, const FoundEntry& found) {
  if (found.way >= 0) return found.scale == found.scale ? static_cast<int32_t>(found.row) : kPlaceDefault;
  return pool.whole || !lookup.lists_misses ? kPlaceDefault : kPlaceMissing;
}

/// What a lane needs to know of one key.
struct KeyAt {
  int64_t item, at;
  FoundEntry found;
  int32_t place;
};

/// Marks the entry of a key as used, updates `counts`, and lists the key if its place is kPlaceMissing.
__device__ void note_key(const CacheLookup& lookup, const CachePool& pool, int32_t p, const KeyAt& of, uint8_t era,
                         LookupCounts& counts) {
  if (of.found.way >= 0) {
    uint8_t* const used = pool.used + int64_t{of.found.set} * kCacheWays + of.found.way;
    if (volatile_load(used) != era) *used = era;
  }
  counts.defaults += of.place == kPlaceDefault;
  counts.misses += of.found.way < 0 && !pool.whole;
  const CachePart& part = lookup.parts[p];
  if (lookup.places && part.offsets) lookup.places[of.at] = of.place;
  if (of.place != kPlaceMissing) return;
  lookup.misses[atomicAdd(&lookup.state->sessions[lookup.session].misses, 1u)] = {
      part.keys[of.at - part.first_key], of.item, p, static_cast<int32_t>(of.at)};
}

/// Notes keys [at, at + count). Each lane notes one key, so that the loads of different keys overlap. Key k belongs to
/// item + k * item_step.
__device__ void note_keys(const CacheLookup& lookup, const CachePool& pool, int32_t p, int64_t item, int item_step,
                          int64_t at, int count, const FoundEntry (&found)[kAtOnce], const int32_t (&places)[kAtOnce],
                          uint8_t era, const CacheLanes& lanes, LookupCounts& counts) {
  if (lanes.lane >= count) return;
  KeyAt own{item + lanes.lane * item_step, at + lanes.lane, found[0], places[0]};
#pragma unroll
  for (int k = 1; k < kAtOnce; ++k)
    if (lanes.lane == k) own.found = found[k], own.place = places[k];
  note_key(lookup, pool, p, own, era, counts);
}

/// Finds the entries of keys[0, count) of a part. count <= kAtOnce. First loads all entries, then the heads of the
/// first matching entries, so that the loads of different keys overlap.
__device__ void find_some(const CachePool& pool, const CachePart& part, const int64_t* keys, int count,
                          const CacheLanes& lanes, FoundEntry (&found)[kAtOnce]) {
  uint64_t entries[kAtOnce];
  int64_t key[kAtOnce];
  uint32_t candidates[kAtOnce], row[kAtOnce];
  CacheHead heads[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) key[k] = keys[min(k, count - 1)];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) entries[k] = load_entry(pool, CacheHash(pool, key[k], part.space).set, lanes.lane);
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    candidates[k] = lanes.ballot(may_hold(entries[k], CacheHash(pool, key[k], part.space).tag));
    row[k] = cache_row(lanes.of(entries[k], max(__ffs(static_cast<int>(candidates[k])) - 1, 0)));
    if (candidates[k] != 0) heads[k] = load_head(pool, row[k]);
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const CacheHash hash(pool, key[k], part.space);
    if (candidates[k] != 0 && heads[k].key == key[k] && heads[k].space == part.space) {
      found[k] = {hash.set, row[k], __ffs(static_cast<int>(candidates[k])) - 1, heads[k].scale};
      continue;
    }
    found[k] = match_in_set(pool, lanes, entries[k], hash.set, hash.tag, key[k], part.space);
    if (found[k].way < 0 && pool.whole) found[k] = find_further(pool, lanes, hash, entries[k], key[k], part.space);
  }
}

/// Returns elements [i, i + 4) of row `place`, or the default if `place` is negative.
template <bool kOnlyF32 = false>
__device__ float4 elements_at(const CachePool& pool, const CachePart& part, int32_t place, float scale, int64_t i) {
  return place >= 0 ? load_elements<kOnlyF32>(pool, static_cast<uint32_t>(place), i, scale)
                    : all_equal(part.default_value);
}

/// Writes `count` vectors of a part that has one vector per key. count <= kAtOnce.
template <bool kOnlyF32>
__device__ void write_rows(const CacheLookup& lookup, int32_t p, int64_t item, int count, uint8_t era,
                           const CacheLanes& lanes, LookupCounts& counts) {
  const CachePart& part = lookup.parts[p];
  const CachePool& pool = lookup.pools[part.pool];
  const int64_t first = item - part.first_item, at = part.first_key + first;
  FoundEntry found[kAtOnce];
  find_some(pool, part, part.keys + (at - part.first_key), count, lanes, found);
  int32_t places[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) places[k] = place_of(lookup, pool, found[k]);
  note_keys(lookup, pool, p, item, 1, at, count, found, places, era, lanes, counts);
  for (int64_t i = lanes.lane * kElements; i < pool.dim; i += kPassElements) {
    float4 values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (k < count) values[k] = elements_at<kOnlyF32>(pool, part, places[k], found[k].scale, i);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (k < count) store_elements(part.out + (first + k) * part.stride, i, pool.dim, values[k]);
  }
}

/// Writes the vector of one bag. One sweep over the keys accumulates kPasses * kPassElements elements. A longer vector
/// needs further sweeps, each of which looks up the keys again.
template <int kPasses, bool kOnlyF32>
__device__ void write_bag(const CacheLookup& lookup, int32_t p, int64_t item, uint8_t era, const CacheLanes& lanes,
                          LookupCounts& counts) {
  const CachePart& part = lookup.parts[p];
  const CachePool& pool = lookup.pools[part.pool];
  const CacheBag bag(part, item);
  float* const to = part.out + (item - part.first_item) * part.stride;
  const float weight = weight_of_bag(part.combiner, bag.end - bag.begin);
  for (int64_t begin = 0; begin < pool.dim; begin += kPasses * kPassElements) {
    float4 sums[kPasses];
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) sums[pass] = all_equal(0);
    for (int64_t at = bag.begin; at < bag.end; at += kAtOnce) {
      const int count = static_cast<int>(min(bag.end - at, int64_t{kAtOnce}));
      FoundEntry found[kAtOnce];
      find_some(pool, part, part.keys + (at - part.first_key), count, lanes, found);
      int32_t places[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) places[k] = place_of(lookup, pool, found[k]);
      if (begin == 0) note_keys(lookup, pool, p, item, 0, at, count, found, places, era, lanes, counts);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int64_t i = begin + pass * kPassElements + lanes.lane * kElements;
        if (i >= pool.dim) continue;
        float4 values[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) values[k] = elements_at<kOnlyF32>(pool, part, places[k], found[k].scale, i);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k)
          if (k < count) add(sums[pass], values[k]);
      }
    }
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int64_t i = begin + pass * kPassElements + lanes.lane * kElements;
      if (i < pool.dim) store_elements(to, i, pool.dim, scaled(sums[pass], weight));
    }
  }
}

/// The number of adjacent items that a half-warp processes together. A bag already has several keys to overlap.
__host__ __device__ int64_t items_at_once(const CacheLookup& lookup) { return lookup.has_bags ? 1 : kAtOnce; }

/// Opens the session. Each block calls begin_session() before its first read of an entry.
__device__ void begin_session(const CacheLookup& lookup) {
  if (threadIdx.x == 0) {
    CacheState& state = *lookup.state;
    CacheSession& session = state.sessions[lookup.session];
    atomicCAS(&session.epoch, 0ull, volatile_load(&state.epoch));
    // After this fence, one of two cases holds: an update sees this epoch in the session, or this block reads the
    // entries that the update has set.
    full_fence();
    const uint32_t generation = volatile_load(&state.generation);
    const uint32_t seen = atomicCAS(&session.generation, 0u, generation + 1);
    if (generation % 2 != 0 || (seen != 0 && seen != generation + 1)) session.mixed = 1;
  }
  __syncthreads();
}

/// Closes the session. Each block calls end_session() after its last read; the last block writes the answer.
__device__ void end_session(const CacheLookup& lookup, LookupCounts counts) {
  __shared__ uint32_t misses, defaults;
  if (threadIdx.x == 0) misses = defaults = 0;
  __syncthreads();
  if (counts.misses) atomicAdd(&misses, counts.misses);
  if (counts.defaults) atomicAdd(&defaults, counts.defaults);
  __threadfence();  // publishes the vectors and the listed misses
  __syncthreads();
  if (threadIdx.x != 0) return;
  CacheState& state = *lookup.state;
  CacheSession& session = state.sessions[lookup.session];
  if (!lookup.lists_misses && misses) atomicAdd(&session.misses, misses);
  if (defaults) atomicAdd(&session.defaults, defaults);
  full_fence();
  if (atomicAdd(&session.blocks, 1u) + 1 < gridDim.x) return;
  full_fence();
  const uint32_t all_misses = volatile_load(&session.misses);
  CacheAnswer& answer = *lookup.answer;
  answer.misses = all_misses;
  answer.defaults = volatile_load(&session.defaults);
  answer.mixed = volatile_load(&session.mixed) |
                 static_cast<uint32_t>(volatile_load(&state.generation) + 1 != volatile_load(&session.generation));
  session.generation = session.mixed = session.misses = session.defaults = session.blocks = 0;
  full_fence();
  if (all_misses == 0 || !lookup.lists_misses) *static_cast<volatile unsigned long long*>(&session.epoch) = 0;
  __threadfence_system();
  *static_cast<volatile uint32_t*>(&answer.ticket) = lookup.ticket;
}

template <int kPasses, bool kOnlyF32>
__global__ void __launch_bounds__(kThreads) cache_lookup_kernel(const __grid_constant__ CacheLookup lookup) {
  begin_session(lookup);
  const CacheLanes lanes;
  const auto era = static_cast<uint8_t>(volatile_load(&lookup.state->era));
  LookupCounts counts;
  const int64_t groups = thread_count() / kCacheWays, at_once = items_at_once(lookup);
  int64_t item = thread_index() / kCacheWays * at_once;
  for (; item < lookup.items; item += groups * at_once) {
    const int64_t end = min(item + at_once, lookup.items);
    for (int64_t i = item; i < end;) {
      const int32_t p = part_of_item(lookup, i);
      const int64_t of_part = p + 1 < lookup.part_count ? min(end, lookup.parts[p + 1].first_item) : end;
      if (lookup.parts[p].offsets) {
        for (; i < of_part; ++i) write_bag<kPasses, kOnlyF32>(lookup, p, i, era, lanes, counts);
      } else {
        write_rows<kOnlyF32>(lookup, p, i, static_cast<int>(of_part - i), era, lanes, counts);
        i = of_part;
      }
    }
  }
  end_session(lookup, counts);
}

/// Returns elements [i, i + 4) of the row fill.found[number], or the default.
__device__ float4 answered(const CacheFill& fill, const CachePart& part, int64_t number, int64_t i, int64_t dim) {
  const int64_t first = fill.found[number].first;
  if (first < 0) return all_equal(part.default_value);
  const float* const from = fill.values + first + i;
  float list[kElements] = {};
  for (int e = 0; e < kElements && i + e < dim; ++e) list[e] = from[e];
  return {list[0], list[1], list[2], list[3]};
}

__global__ void cache_answers_kernel(const __grid_constant__ CacheLookup lookup, CacheFill fill) {
  const CacheLanes lanes;
  for (int64_t n = thread_index() / kCacheWays; n < fill.found_count; n += thread_count() / kCacheWays) {
    const CacheFound found = fill.found[n];
    const CachePart& part = lookup.parts[found.part];
    if (part.offsets) {
      if (lanes.lane == 0) lookup.places[found.at] = static_cast<int32_t>(kPlaceFilled - n);
      continue;
    }
    const int64_t dim = lookup.pools[part.pool].dim;
    for (int64_t i = lanes.lane * kElements; i < dim; i += kPassElements)
      store_elements(part.out + (found.at - part.first_key) * part.stride, i, dim, answered(fill, part, n, i, dim));
  }
}

__global__ void cache_bags_kernel(const __grid_constant__ CacheLookup lookup, CacheFill fill) {
  const CacheLanes lanes;
  for (int64_t n = thread_index() / kCacheWays; n < fill.bag_count; n += thread_count() / kCacheWays) {
    const int64_t item = fill.bags[n];
    const CachePart& part = lookup.parts[part_of_item(lookup, item)];
    const CachePool& pool = lookup.pools[part.pool];
    const CacheBag bag(part, item);
    float* const to = part.out + (item - part.first_item) * part.stride;
    const float weight = weight_of_bag(part.combiner, bag.end - bag.begin);
    for (int64_t i = lanes.lane * kElements; i < pool.dim; i += kPassElements) {
      float4 sum = all_equal(0);
      for (int64_t at = bag.begin; at < bag.end; ++at) {
        const int32_t place = lookup.places[at];
        if (place <= kPlaceFilled) {
          add(sum, answered(fill, part, kPlaceFilled - place, i, pool.dim));
        } else {
          const float scale = place >= 0 ? load_head(pool, static_cast<uint32_t>(place)).scale : 1.0f;
          add(sum, elements_at(pool, part, place, scale, i));
        }
      }
      store_elements(to, i, pool.dim, scaled(sum, weight));
    }
  }
}

__global__ void cache_leave_kernel(CacheState* state, int32_t session) {
  full_fence();
  *static_cast<volatile unsigned long long*>(&state->sessions[session].epoch) = 0;
}

}  // namespace

namespace cuda {

void cache_lookup(Context& ctx, const CacheLookup& lookup) {
  const int64_t groups = (lookup.items + items_at_once(lookup) - 1) / items_at_once(lookup);
  const auto grid = grid_for(std::max<int64_t>(groups, 1) * kCacheWays, kThreads, hctr::cuda::blocks_of_device(8));
  const auto start = [&](auto only_f32) {
    constexpr bool kOnlyF32 = decltype(only_f32)::value;
    const int passes = (lookup.most_dim + kPassElements - 1) / kPassElements;
    if (passes <= 1)
      launch(ctx, "cache_lookup", grid, cache_lookup_kernel<1, kOnlyF32>, lookup);
    else if (passes <= 2)
      launch(ctx, "cache_lookup", grid, cache_lookup_kernel<2, kOnlyF32>, lookup);
    else
      launch(ctx, "cache_lookup", grid, cache_lookup_kernel<4, kOnlyF32>, lookup);
  };
  lookup.only_f32 ? start(std::true_type()) : start(std::false_type());
}

void cache_fill(Context& ctx, const CacheLookup& lookup, const CacheFill& fill) {
  launch(ctx, "cache_answers", grid_for(fill.found_count * kCacheWays), cache_answers_kernel, lookup, fill);
  launch(ctx, "cache_bags", grid_for(fill.bag_count * kCacheWays), cache_bags_kernel, lookup, fill);
  cuda::cache_leave(ctx, lookup.state, lookup.session);
}

void cache_leave(Context& ctx, CacheState* state, int32_t session) {
  launch(ctx, "cache_leave", {1, 1}, cache_leave_kernel, state, session);
}

}  // namespace cuda
}  // namespace hctr::ops
