// How update kernels load and store the elements of a row. PlainRows: all arrays are f32. RoundedRows: any array may
// have two-byte elements. RoundedRows tests the array's type at each access, with the same result in all threads, and
// rounds stochastically at each store.
#pragma once

#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/embedding_vector.cuh"

namespace hctr::ops {

class PlainRows {
 public:
  static constexpr int kWidest = 4;  // maximum number of elements that a lane accesses at a time
  __device__ PlainRows(const RowData&, int64_t /*row*/, int64_t /*update*/) {}
  template <int Width>
  __device__ Fragment<Width> load(const RowMemory& memory, int64_t at) const {
    return load_fragment<Width>(memory.as<const float>() + at);
  }
  template <int Width>
  __device__ void store(const RowMemory& memory, int64_t at, const Fragment<Width>& part, int /*which*/,
                        int64_t /*e*/) const {
    store_fragment<Width>(memory.as<float>() + at, part);
  }
};

class RoundedRows {
 public:
  static constexpr int kWidest = 8;  // one random draw suffices to round eight elements
  __device__ RoundedRows(const RowData& data, int64_t row, int64_t update) : rounding_(data.rounding_of(row, update)) {}
  template <int Width>
  __device__ Fragment<Width> load(const RowMemory& memory, int64_t at) const {
    if (memory.dtype == DType::f16) return load_fragment<Width>(memory.as<const Half>() + at);
    if (memory.dtype == DType::bf16) return load_fragment<Width>(memory.as<const BFloat16>() + at);
    return load_fragment<Width>(memory.as<const float>() + at);
  }
  /// Stores elements e to e + Width - 1 of the row's array `which` (see RowRounding). `at`: index of element e in
  /// `memory`.
  template <int Width>
  __device__ void store(const RowMemory& memory, int64_t at, const Fragment<Width>& part, int which, int64_t e) const {
    if (memory.dtype == DType::f16)
      store_rounded(memory.as<Half>() + at, part, which, e);
    else if (memory.dtype == DType::bf16)
      store_rounded(memory.as<BFloat16>() + at, part, which, e);
    else
      store_fragment<Width>(memory.as<float>() + at, part);
  }

 private:
  template <class T, int Width>
  __device__ void store_rounded(T* to, const Fragment<Width>& part, int which, int64_t e) const {
    static_assert(Width == 1 || Width == 4 || Width == 8);
    const Random4 draw = rounding_.eight(which, e & ~int64_t{7});
    // index of element e among the eight elements of the draw
    const int first = Width == 8 ? 0 : static_cast<int>(e & 7);
    Pack<T, Width> pack;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const int place = first + i, word = Width == 1 ? place & 3 : i & 3;
      const uint32_t low = word & 1 ? draw.v[1] : draw.v[0],
                     high = word & 1 ? draw.v[3] : draw.v[2];  // avoids dynamic register indexing
      pack.v[i] = rounded_at_random<T>(part.v[i], RowRounding::bits_of(word & 2 ? high : low, place));
    }
    *reinterpret_cast<Pack<T, Width>*>(to) = pack;
  }

  RowRounding rounding_;
};

/// Calls body.operator()<Width>() with the largest Width <= Rows::kWidest for which fits(Width) is true.
template <class Rows, class Fits, class Body>
void dispatch_width_of(const Fits& fits, Body&& body) {
  if constexpr (Rows::kWidest == 8)
    if (fits(8)) return body.template operator()<8>();
  dispatch_width(fits(4), body);
}

/// Calls body.operator()<Rows>() with PlainRows if all arrays are f32, else with RoundedRows.
template <class Body>
void dispatch_rows(const RowData& data, Body&& body) {
  if (data.all_f32())
    body.template operator()<PlainRows>();
  else
    body.template operator()<RoundedRows>();
}

}  // namespace hctr::ops
