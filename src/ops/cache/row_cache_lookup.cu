// Row cache lookups. A warp finds 32 keys at a time. A lookup without bags then copies their rows in the same kernel. A
// lookup with bags stores the places of all keys, and a second kernel adds up the rows of each bag.
//
// The first kernel reads rows and heads from L2 (see RowsThrough). The address of a row depends on the entry, so the
// entry is loaded before the row. Writers order their stores with a fence.
#include "ops/cache/row_cache_elements.cuh"
#include "ops/cache/row_cache_find.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

constexpr int kFindThreads = 256, kRowThreads = 128;
constexpr int kMostAtOnce = 8;  // number of rows that a lane loads concurrently

/// Returns the part that contains key `at`.
__device__ int32_t part_of_key(const CacheLookup& lookup, int64_t at) {
  return last_part_from<&CachePart::first_key>(lookup, at);
}

/// Whether a bag of the part contains key `at`. Some keys may be in no bag, because offsets may begin after the first
/// key and end before the last one.
__device__ bool is_in_bag(const CacheLookup& lookup, int32_t p, int64_t at) {
  const CachePart& part = lookup.part(p);
  if (!part.offsets) return true;
  const int64_t bags = (p + 1 < lookup.part_count ? lookup.part(p + 1).first_item : lookup.items) - part.first_item;
  return part.offsets[0] <= at - part.first_key && at - part.first_key < part.offsets[bags];
}

/// The rows of 32 keys of a warp. kLanes lanes copy a row.
template <int kLanes, bool kOnlyF32>
class WarpRows {
 public:
  static constexpr int kRowsOfStep = 32 / kLanes;
  static constexpr int kAtOnce = kLanes < kMostAtOnce ? kLanes : kMostAtOnce;

  __device__ WarpRows(const CacheLookup& lookup, const LaneKey& own, int32_t place, float scale, int count)
      : lookup_(lookup), own_(own), place_(place), scale_(scale), count_(count) {}

  __device__ void write() const {
    const int32_t p = __shfl_sync(kWholeWarp, own_.part, 0);
    if (__all_sync(kWholeWarp, own_.part == p)) {
      const CachePart part = lookup_.part(p);
      const CachePool pool = lookup_.pools[part.pool];
      for (int step = 0; step < kLanes && step * kRowsOfStep < count_; step += kAtOnce)
        write_steps<kAtOnce>(part, pool, step);
      return;
    }
    for (int step = 0; step < kLanes && step * kRowsOfStep < count_; ++step) {
      const CachePart part = lookup_.part(__shfl_sync(kWholeWarp, own_.part, of_step(step)));
      write_steps<1>(part, lookup_.pools[part.pool], step);
    }
  }

 private:
  /// In each step, this lane copies a part of one row. Returns the lane that has the key of that row.
  __device__ int of_step(int step) const { return step * kRowsOfStep + static_cast<int>(threadIdx.x % 32) / kLanes; }

  template <int kSteps>
  __device__ void write_steps(const CachePart& part, const CachePool& pool, int step) const {
    int32_t places[kSteps];
    float scales[kSteps];
    const int64_t first = __shfl_sync(kWholeWarp, own_.at, 0) - part.first_key;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      places[k] = __shfl_sync(kWholeWarp, place_, of_step(step + k));
      scales[k] = kOnlyF32 ? 1.0f : __shfl_sync(kWholeWarp, scale_, of_step(step + k));
    }
    for (int i = static_cast<int>(threadIdx.x % kLanes) * kElements; i < pool.dim; i += kLanes * kElements) {
      float4 values[kSteps];
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        values[k] = elements_at<kOnlyF32>(pool, part.default_value, places[k], scales[k], i);
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        if (of_step(step + k) < count_)
          store_elements(part.out + (first + of_step(step + k)) * part.stride, i, pool.dim, values[k]);
    }
  }

  const CacheLookup& lookup_;
  const LaneKey& own_;
  int32_t place_;
  float scale_;
  int count_;
};

/// The request of this lane, for key `first` + lane. If the lookup has no such key, the lane has no key (`asked` is
/// false).
__device__ LaneRequest request_at(const CacheLookup& lookup, int64_t first) {
  if (first >= lookup.keys) return {};
  const int64_t own_at = first + threadIdx.x % 32, at = min(own_at, lookup.keys - 1);
  return {lookup, part_of_key(lookup, at), at, own_at < lookup.keys};
}

/// Loads the pool of a part into L1.
__device__ void prefetch_pool(const CacheLookup& lookup, int32_t p) {
  const auto* const pool = reinterpret_cast<const std::byte*>(lookup.pools + lookup.part(p).pool);
  asm volatile("prefetch.global.L1 [%0];" ::"l"(pool));
  asm volatile("prefetch.global.L1 [%0];" ::"l"(pool + sizeof(CachePool) - 1));
}

/// Looks up keys of parts without bags.
template <int kLanes, bool kOnlyF32>
__global__ void __launch_bounds__(kFindThreads, 2) cache_rows_kernel(const __grid_constant__ CacheLookup lookup) {
  int64_t first = thread_index() / 32 * 32;
  // The block reads the key and the arguments of its pool while it opens the session. If the pool changes meanwhile,
  // the generation changes, too.
  LaneRequest next = request_at(lookup, first);
  prefetch_pool(lookup, next.part);
  const SeenState seen = begin_session(lookup);
  LookupCounts counts;
  for (; first < lookup.keys; first += thread_count()) {
    const int count = static_cast<int>(min(lookup.keys - first, int64_t{32}));
    const LaneKey own(lookup, next, seen.applying);
    next = request_at(lookup, first + thread_count());
    const FoundByLane found = find_by_lane(own);
    const int32_t place = note_by_lane(lookup, own, found, seen.era, counts);
    WarpRows<kLanes, kOnlyF32>(lookup, own, place, found.entry.scale, count).write();
  }
  write_answer(lookup, counts, false);
}

/// Stores the places of all keys.
__global__ void __launch_bounds__(kFindThreads, 3) cache_find_kernel(const __grid_constant__ CacheLookup lookup) {
  const SeenState seen = begin_session(lookup);
  LookupCounts counts;
  for (int64_t first = thread_index() / 32 * 32; first < lookup.keys; first += thread_count()) {
    LaneRequest request = request_at(lookup, first);
    request.asked = request.asked && is_in_bag(lookup, request.part, request.at);
    const LaneKey own(lookup, request, seen.applying);
    const int32_t place = note_by_lane(lookup, own, find_by_lane(own), seen.era, counts);
    if (own.asked) __stcs(lookup.places + own.at, place);
  }
  write_answer(lookup, counts, true);
}

/// Adds up the rows of one item with kLanes lanes, in the order of the item's keys.
template <int kLanes, bool kOnlyF32, RowsThrough kThrough, int kSteps>
class ItemSum {
 public:
  __device__ ItemSum(const CachePool& pool, const CachePart& part, int i)
      : pool_(pool), part_(part), i_(i < pool.dim ? i : 0), scales_(!kOnlyF32 && bytes_of(pool.type) == 1) {}

  /// Adds the rows of kLanes keys, or of the first `count` of these keys. Each lane has the place of one key. A lane
  /// loads kSteps rows at a time. Call from all lanes of a warp. kAllRows: the keys of all lanes have a row.
  template <bool kAllRows>
  __device__ void add_rows(int32_t own_place, int count) {
#pragma unroll 1
    for (int step = 0; step < kLanes && (kAllRows || __any_sync(kWholeWarp, step < count)); step += kSteps) {
      float4 values[kSteps];
      int32_t places[kSteps];
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        places[k] = __shfl_sync(kWholeWarp, own_place, step + k, kLanes);
        // A lane whose key has no row loads row 0 and ignores it, because only loads without conditions run
        // concurrently.
        const auto row = static_cast<uint32_t>(kAllRows ? places[k] : max(places[k], 0));
        values[k] = load_elements<kOnlyF32, kThrough>(pool_, row, i_, scales_ ? __ldca(&pool_.heads[row].scale) : 1.0f);
      }
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        if (!kAllRows && places[k] < 0) values[k] = all_equal(part_.default_value);
        if (kAllRows || (part_.offsets && step + k < count))
          add(sum_, values[k]);
        else if (step + k < count)
          sum_ = values[k];
      }
    }
  }
  __device__ float4 sum() const { return sum_; }

 private:
  const CachePool& pool_;
  const CachePart& part_;
  int i_;
  bool scales_;
  float4 sum_ = all_equal(0);
};

/// Writes the vectors of all items from the places of their keys. The items of a warp advance together, so that all
/// lanes take part in shuffles.
template <int kLanes, bool kOnlyF32, RowsThrough kThrough = RowsThrough::l1, int kAtOnce = kMostAtOnce>
__global__ void __launch_bounds__(kRowThreads, kOnlyF32 ? 6 : 4)
    cache_gather_kernel(const __grid_constant__ CacheLookup lookup) {
  constexpr int kItems = 32 / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  for (int64_t first = thread_index() / 32 * kItems; first < lookup.items; first += thread_count() / 32 * kItems) {
    const int64_t own_item = first + threadIdx.x % 32 / kLanes, item = min(own_item, lookup.items - 1);
    const CachePart part = lookup.part(part_of_item(lookup, item));
    const CachePool pool = lookup.pools[part.pool];
    const CacheBag bag(part, item);
    const int64_t end = own_item < lookup.items ? bag.end : bag.begin;
    const float weight = part.offsets ? weight_of_bag(part.combiner, bag.end - bag.begin) : 1.0f;
    const auto place_at = [&](int64_t at) { return at < end ? __ldcs(lookup.places + at) : kPlaceDefault; };
    for (int i = lane * kElements; __any_sync(kWholeWarp, i < pool.dim); i += kLanes * kElements) {
      ItemSum<kLanes, kOnlyF32, kThrough, (kLanes < kAtOnce ? kLanes : kAtOnce)> of(pool, part, i);
      int32_t next = place_at(bag.begin + lane);
      for (int64_t at = bag.begin; __any_sync(kWholeWarp, at < end); at += kLanes) {
        const int32_t own = next;
        next = place_at(at + kLanes + lane);
        // All lanes can have a row only if the items are bags, because an item of a part without bags has one key.
        if (__all_sync(kWholeWarp, own >= 0))
          of.template add_rows<true>(own, kLanes);
        else
          of.template add_rows<false>(own, static_cast<int>(max(min(end - at, int64_t{kLanes}), int64_t{0})));
      }
      if (i < pool.dim && own_item < lookup.items)
        store_elements(part.out + (item - part.first_item) * part.stride, i, pool.dim, scaled(of.sum(), weight));
    }
  }
  end_rows(lookup);
}

/// Calls work(lanes, only_f32) with two values that are known at compile time. `lanes` is the number of lanes that load
/// a row of the lookup's largest dim; `only_f32` is whether all pools store f32.
template <class Work>
void with_lanes(const CacheLookup& lookup, Work work) {
  const auto of_type = [&](auto lanes) {
    lookup.only_f32 ? work(lanes, std::true_type()) : work(lanes, std::false_type());
  };
  if (lookup.most_dim <= 4 * kElements)
    of_type(std::integral_constant<int, 4>());
  else if (lookup.most_dim <= 8 * kElements)
    of_type(std::integral_constant<int, 8>());
  else if (lookup.most_dim <= 16 * kElements)
    of_type(std::integral_constant<int, 16>());
  else
    of_type(std::integral_constant<int, 32>());
}

}  // namespace

namespace cuda {

void cache_lookup(Context& ctx, const CacheLookup& lookup) {
  // With at most kFewKeys keys, small blocks divide the keys among many multiprocessors.
  constexpr int64_t kFewKeys = 32'768;
  const int find_threads = lookup.keys <= kFewKeys ? 32 : kFindThreads;
  const auto find_grid = grid_for(std::max<int64_t>(lookup.keys, 1), find_threads, hctr::cuda::blocks_of_device(8));
  with_lanes(lookup, [&](auto lanes, auto only_f32) {
    constexpr int kLanes = decltype(lanes)::value;
    constexpr bool kOnlyF32 = decltype(only_f32)::value;
    if (!lookup.has_bags) {
      launch(ctx, "cache_rows", find_grid, cache_rows_kernel<kLanes, kOnlyF32>, lookup);
      return;
    }
    launch(ctx, "cache_find", find_grid, cache_find_kernel, lookup);
    const auto threads = std::max<int64_t>(lookup.items, 1) * kLanes;
    const auto grid = grid_for(threads, kRowThreads, hctr::cuda::blocks_of_device(16));
    launch(ctx, "cache_gather", grid, cache_gather_kernel<kLanes, kOnlyF32>, lookup);
  });
}

}  // namespace cuda
}  // namespace hctr::ops
