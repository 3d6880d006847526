// Completes lookups that listed misses: writes the answered rows, recomputes bags, and ends the session.
#include "ops/cache/row_cache_elements.cuh"
#include "ops/cache/row_cache_session.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

constexpr int kPassElements = kCacheWays * kElements;

/// Returns elements [i, i + 4) of the row fill.found[number], or the default.
__device__ float4 answered(const CacheFill& fill, const CachePart& part, int64_t number, int64_t i, int64_t dim) {
  const int64_t first = fill.found[number].first;
  if (first < 0) return all_equal(part.default_value);
  const float* const from = fill.values + first + i;
  if (i + kElements <= dim && reinterpret_cast<uintptr_t>(from) % 16 == 0)
    return *reinterpret_cast<const float4*>(from);
  float list[kElements] = {};
  for (int e = 0; e < kElements && i + e < dim; ++e) list[e] = from[e];
  return {list[0], list[1], list[2], list[3]};
}

/// Ends the session if this is the last kernel of a fill.
__device__ void end_fill(const CacheLookup& lookup, bool is_last) {
  if (!is_last) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  CacheSession& session = lookup.state->sessions[lookup.session];
  if (last_block_ends(session)) *static_cast<volatile unsigned long long*>(&session.epoch) = 0;
}

__global__ void cache_answers_kernel(const __grid_constant__ CacheLookup lookup, CacheFill fill) {
  const CacheLanes lanes;
  for (int64_t n = fill.found_first + thread_index() / kCacheWays; n < fill.found_count;
       n += thread_count() / kCacheWays) {
    const CacheFound found = fill.found[n];
    const CachePart& part = lookup.part(found.part);
    if (part.offsets) {
      if (lanes.lane == 0) lookup.places[found.at] = static_cast<int32_t>(kPlaceFilled - n);
      continue;
    }
    const int64_t dim = lookup.pools[part.pool].dim;
    for (int64_t i = lanes.lane * kElements; i < dim; i += kPassElements)
      store_elements(part.out + (found.at - part.first_key) * part.stride, i, dim, answered(fill, part, n, i, dim));
  }
  end_fill(lookup, fill.ends && fill.bag_count == 0);
}

__global__ void cache_bags_kernel(const __grid_constant__ CacheLookup lookup, CacheFill fill) {
  const CacheLanes lanes;
  for (int64_t n = thread_index() / kCacheWays; n < fill.bag_count; n += thread_count() / kCacheWays) {
    const int64_t item = fill.bags[n];
    const CachePart& part = lookup.part(part_of_item(lookup, item));
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
          add(sum, elements_at(pool, part.default_value, place, scale, i));
        }
      }
      store_elements(to, i, pool.dim, scaled(sum, weight));
    }
  }
  end_fill(lookup, true);
}

__global__ void cache_leave_kernel(CacheState* state, int32_t session) {
  full_fence();
  *static_cast<volatile unsigned long long*>(&state->sessions[session].epoch) = 0;
}

}  // namespace

namespace cuda {

void cache_fill(Context& ctx, const CacheLookup& lookup, const CacheFill& fill) {
  if (fill.found_count == fill.found_first) {
    if (fill.ends) cuda::cache_leave(ctx, lookup.state, lookup.session);
    return;
  }
  launch(ctx, "cache_answers", grid_for((fill.found_count - fill.found_first) * kCacheWays), cache_answers_kernel,
         lookup, fill);
  launch(ctx, "cache_bags", grid_for(fill.bag_count * kCacheWays), cache_bags_kernel, lookup, fill);
}

void cache_leave(Context& ctx, CacheState* state, int32_t session) {
  launch(ctx, "cache_leave", {1, 1}, cache_leave_kernel, state, session);
}

}  // namespace cuda
}  // namespace hctr::ops
