// Pooling kernels: groups of lanes read the rows of a few bags at a time. The launches are in two embedding_pool*.cu
// files, which compile in parallel.
#pragma once

#include <type_traits>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/embedding_vector.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;

constexpr int kPoolThreads = 256;

/// Tuning per element type. kAtOnce: vectors whose rows a group loads concurrently; the load of a row depends on the
/// load of its row number. kBlocks: resident blocks per multiprocessor (0: not set). kHeldThreads: block size if a
/// block has a multiprocessor to itself. Rows of two-byte elements need fewer requests, so more groups must be in
/// flight.
template <class Stored>
struct Pace {
  static constexpr int kAtOnce = sizeof(Stored) == 2 ? 2 : 4, kBlocks = sizeof(Stored) == 2 ? 5 : 0;
  static constexpr int kHeldThreads = sizeof(Stored) == 2 ? 1024 : 768;
};

/// Pools up to Pace::kAtOnce vectors from v0 on, below `end`. Writes vector v to the address to(v, its keys); null
/// skips v.
template <class Stored, int Width, class To>
__device__ __forceinline__ void pool_few(const KeyBatch& batch, int64_t v0, int64_t end, const int32_t* rows,
                                         const Stored* table, Combiner combiner, int64_t dim, const Group& group,
                                         int lanes, const To& to) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  KeyRange keys[kAtOnce];
  int32_t first[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) keys[k] = v0 + k < end ? batch.keys_of(v0 + k) : KeyRange{0, 0};
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) first[k] = keys[k].begin < keys[k].end ? rows[keys[k].begin] : 0;
  for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
    Fragment<Width> part[kAtOnce]{};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (first[k] != 0) part[k] = load_fragment<Width>(table + first[k] * dim + e);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (v0 + k >= end) break;
      auto* vector = to(static_cast<uint32_t>(v0 + k), keys[k]);
      if (!vector) continue;
      Fragment<Width> sum{};
      add(part[k], sum);
      for (int32_t p = keys[k].begin + 1; p < keys[k].end; ++p)
        if (const int32_t row = rows[p]; row != 0) add(load_fragment<Width>(table + row * dim + e), sum);
      const float weight = batch.weight(combiner, v0 + k);
#pragma unroll
      for (int i = 0; i < Width; ++i) sum.v[i] *= weight;
      store_fragment<Width>(vector + e, sum);
    }
  }
}

/// Whether each lane of a warp loads the keys of one vector before the warp pools these vectors. Two-byte rows are read
/// so fast that more warps with fewer vectors each are better.
template <class Stored>
constexpr bool kKeysByLane = sizeof(Stored) == 4;

/// The number of vectors that a warp pools at a time, at most one per lane. If the batch has few vectors, the number is
/// smaller, so that more warps have work. It stays large if other tables share the launch and no bag has several keys.
template <class Stored>
inline int vectors_of_warp(const Context& ctx, const KeyBatch& batch, int lanes) {
  constexpr int64_t kMany = 1 << 15;
  const int at_once = 32 / lanes * Pace<Stored>::kAtOnce;
  if (!kKeysByLane<Stored>) return at_once;
  const bool several = ctx.queue() && ctx.queue()->several() && batch.key_capacity <= batch.vectors();
  return std::min(32, at_once * (several || batch.vectors() >= kMany ? 4 : 1));
}

/// A vector to pool, loaded by one lane of a warp.
template <class T>
struct PooledVector {
  T* to = nullptr;  // null: no vector
  KeyRange keys{0, 0};
  int32_t first = 0;  // the row of the first key; 0: none
};

/// Returns the `x` of lane `lane` in every lane. Call from all lanes of the warp.
template <class T>
__device__ T* of_lane(T* x, int lane) {
  return reinterpret_cast<T*>(__shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(x), lane));
}
template <class X>
__device__ X of_lane(X x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}

/// Pools the vectors that the lanes of a warp have loaded by copying rows. Requires that no vector has several keys.
template <class Stored, int Width, class T>
__device__ __forceinline__ void copy_vectors(const PooledVector<T>& mine, int here, const Stored* table, int64_t dim,
                                             const Group& group, int own) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  const int groups = 32 / group.lanes;
  for (int i = 0; i < here; i += groups * kAtOnce) {
    T* to[kAtOnce];
    int32_t row[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int from = i + k * groups + own;
      T* const vector = of_lane(mine.to, from % 32);
      to[k] = from < here ? vector : nullptr;
      row[k] = of_lane(mine.first, from % 32);
    }
    for (int64_t e = group.lane * Width; e < dim; e += group.lanes * Width) {
      Fragment<Width> part[kAtOnce]{};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (to[k] && row[k] != 0) part[k] = load_fragment<Width>(table + row[k] * dim + e);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        Fragment<Width> sum{};
        add(part[k], sum);
        if (to[k]) store_fragment<Width>(to[k] + e, sum);
      }
    }
  }
}

/// Returns elements [e, e + Width) of the sum of the rows of `keys`, added in order. Loads kAtOnce rows at a time.
template <class Stored, int Width>
__device__ __forceinline__ Fragment<Width> sum_bag(const KeyRange& keys, const int32_t* rows, const Stored* table,
                                                   int64_t dim, int64_t e) {
  constexpr int kAtOnce = 4;
  Fragment<Width> sum{};
  for (int32_t p = keys.begin; p < keys.end; p += kAtOnce) {
    int32_t row[kAtOnce];
    Fragment<Width> part[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) row[k] = p + k < keys.end ? rows[p + k] : 0;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (row[k] != 0) part[k] = load_fragment<Width>(table + row[k] * dim + e);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (row[k] != 0) add(part[k], sum);
  }
  return sum;
}

/// Pools the vectors v0 to v0 + here - 1 with one warp. Each lane loads the keys and the first row number of one
/// vector; then groups of lanes read the rows.
template <class Stored, int Width, class To>
__device__ __forceinline__ void pool_by_lane(const KeyBatch& batch, int64_t v0, int here, const int32_t* rows,
                                             const Stored* table, Combiner combiner, int64_t dim, const Group& group,
                                             const To& to) {
  using T = std::remove_pointer_t<decltype(to(0u, KeyRange{}))>;
  const int lane = static_cast<int>(threadIdx.x) % 32, own = lane / group.lanes;
  PooledVector<T> mine;
  if (lane < here) {
    mine.keys = batch.keys_of(v0 + lane);
    mine.to = to(static_cast<uint32_t>(v0 + lane), mine.keys);
    if (mine.keys.begin < mine.keys.end) mine.first = rows[mine.keys.begin];
  }
  if (!__any_sync(0xffffffffu, mine.keys.end - mine.keys.begin > 1))
    return copy_vectors<Stored, Width>(mine, here, table, dim, group, own);
  const float weight_here = lane < here ? batch.weight(combiner, v0 + lane) : 1;
  for (int i = own; i - own < here; i += 32 / group.lanes) {
    T* const vector = of_lane(mine.to, i);
    const KeyRange keys{of_lane(mine.keys.begin, i), of_lane(mine.keys.end, i)};
    const float weight = of_lane(weight_here, i);
    for (int64_t e = group.lane * Width; e < dim && vector; e += group.lanes * Width) {
      Fragment<Width> sum = sum_bag<Stored, Width>(keys, rows, table, dim, e);
#pragma unroll
      for (int k = 0; k < Width; ++k) sum.v[k] *= weight;
      store_fragment<Width>(vector + e, sum);
    }
  }
}

/// Pools all vectors. A warp pools `each` = vectors_of_warp() vectors at a time. Writes each vector to the address
/// to(sample, column); null skips the vector.
template <class Stored, int Width, class To>
__device__ __forceinline__ void pool_all(const BlockRange& range, const KeyBatch& batch, const int32_t* rows,
                                         const Stored* table, Combiner combiner, int64_t dim, int lanes, int each,
                                         const To& to) {
  const Group group(range, lanes);
  const int64_t vectors = batch.vectors();
  const auto samples = static_cast<uint32_t>(batch.samples);
  const auto place = [&](uint32_t v, KeyRange) { return to(v % samples, v / samples); };
  if constexpr (kKeysByLane<Stored>) {
    for (int64_t v0 = range.thread_index() / 32 * each; v0 < vectors; v0 += range.thread_count() / 32 * each)
      pool_by_lane<Stored, Width>(batch, v0, static_cast<int>(min(int64_t{each}, vectors - v0)), rows, table, combiner,
                                  dim, group, place);
  } else {
    constexpr int kAtOnce = Pace<Stored>::kAtOnce;
    for (int64_t v0 = group.index * kAtOnce; v0 < vectors; v0 += group.count * kAtOnce)
      pool_few<Stored, Width>(batch, v0, vectors, rows, table, combiner, dim, group, lanes, place);
  }
}

/// Calls body.operator()<T, Stored, Width>() with the widest access that vectors and table allow, up to 16 bytes of a
/// row. alike(width, bytes): whether the memory of the vectors allows accesses of `width` elements of `bytes` bytes.
/// Combinations of f16 and bf16, which no model uses, compile only two widths.
template <class Alike, class Body>
void dispatch_widest(DType vectors, const RowMemory& table, int64_t dim, const Alike& alike, Body&& body) {
  dispatch_float(vectors, [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      const auto fits = [&](int64_t width) {
        return splits_by(width, table.data, sizeof(Stored), dim, dim) && alike(width, static_cast<int64_t>(sizeof(T)));
      };
      constexpr bool kTwoBytes = sizeof(Stored) == 2, kRare = kTwoBytes && sizeof(T) == 2 && !std::is_same_v<T, Stored>;
      if constexpr (kTwoBytes)
        if (fits(8)) return body.template operator()<T, Stored, 8>();
      if constexpr (kRare) {
        body.template operator()<T, Stored, 1>();
      } else {
        if constexpr (kTwoBytes)
          if (!fits(4) && fits(2)) return body.template operator()<T, Stored, 2>();
        dispatch_width(fits(4), [&]<int Width>() { body.template operator()<T, Stored, Width>(); });
      }
    });
  });
}

/// The number of threads to launch. threads_for_all() is for pool_all(); threads_for() is for kernels in which groups
/// of lanes each call pool_few() for Pace::kAtOnce vectors.
inline int64_t threads_for_all(int64_t vectors, int each) { return (vectors + each - 1) / each * 32; }
template <class Stored>
int64_t threads_for(int64_t vectors, int lanes) {
  return (vectors + Pace<Stored>::kAtOnce - 1) / Pace<Stored>::kAtOnce * lanes;
}

template <class Body>
void dispatch_into(const RowMemory& table, const Tensor& y, Body&& body) {
  const auto alike = [&](int64_t width, int64_t size) {
    return splits_by(width, y.bytes(), size, y.row_stride(), y.dim(2));
  };
  dispatch_widest(y.dtype(), table, y.dim(2), alike, body);
}

}  // namespace
}  // namespace hctr::ops
