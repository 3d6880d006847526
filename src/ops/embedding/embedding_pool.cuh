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

/// Pools all vectors; a group of lanes pools Pace::kAtOnce vectors at a time. Writes each vector to the address
/// to(sample, column); null skips the vector.
template <class Stored, int Width, class To>
__device__ __forceinline__ void pool_all(const BlockRange& range, const KeyBatch& batch, const int32_t* rows,
                                         const Stored* table, Combiner combiner, int64_t dim, int lanes, const To& to) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  const Group group(range, lanes);
  const int64_t vectors = batch.vectors();
  const auto samples = static_cast<uint32_t>(batch.samples);
  for (int64_t v0 = group.index * kAtOnce; v0 < vectors; v0 += group.count * kAtOnce)
    pool_few<Stored, Width>(batch, v0, vectors, rows, table, combiner, dim, group, lanes,
                            [&](uint32_t v, KeyRange) { return to(v % samples, v / samples); });
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
