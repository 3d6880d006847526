// Device functions that load rows of a cache and store vectors. Each lane handles four elements at a time.
#pragma once

#include "ops/cache/row_cache_search.cuh"

namespace hctr::ops {

inline constexpr int kElements = 4;  // elements that a lane loads in one pass over a row

__device__ inline float4 four_elements(CachedType type, const std::byte* from) {
  return {cached_element(type, from, 0, 1.0f), cached_element(type, from, 1, 1.0f), cached_element(type, from, 2, 1.0f),
          cached_element(type, from, 3, 1.0f)};
}

/// The cache through which a kernel loads rows. An L1 line may contain the old values of a row that was retired and
/// reused while the kernel ran. A kernel may therefore use L1 only if an earlier kernel of the same session found the
/// rows. Such rows do not change while the kernel runs. Row 0 may change, but its values are not used.
enum class RowsThrough { l1, l2 };

template <RowsThrough kThrough, class T>
__device__ T load_row(const std::byte* at) {
  if constexpr (kThrough == RowsThrough::l1) return __ldca(reinterpret_cast<const T*>(at));
  return __ldcg(reinterpret_cast<const T*>(at));
}

/// Loads elements [i, i + 4) of a row. Elements beyond `dim` are padding.
template <bool kOnlyF32, RowsThrough kThrough = RowsThrough::l2>
__device__ float4 load_elements(const CachePool& pool, uint32_t row, int64_t i, float scale) {
  const std::byte* const at =
      pool.rows + i * (kOnlyF32 ? 4 : bytes_of(pool.type)) + uint64_t{row} * static_cast<uint32_t>(pool.row_bytes);
  if constexpr (kOnlyF32) return load_row<kThrough, float4>(at);
  switch (pool.type) {
    case CachedType::f32:
      return load_row<kThrough, float4>(at);
    case CachedType::f16:
    case CachedType::bf16: {
      const uint2 words = load_row<kThrough, uint2>(at);
      return four_elements(pool.type, reinterpret_cast<const std::byte*>(&words));
    }
    default: {
      const uint32_t word = load_row<kThrough, uint32_t>(at);
      const float4 codes = four_elements(pool.type, reinterpret_cast<const std::byte*>(&word));
      // Prevents an FMA with the following sum: the CPU rounds this product.
      return {__fmul_rn(codes.x, scale), __fmul_rn(codes.y, scale), __fmul_rn(codes.z, scale),
              __fmul_rn(codes.w, scale)};
    }
  }
}

__device__ inline void store_elements(float* to, int64_t i, int64_t dim, float4 values) {
  if (i + kElements <= dim && reinterpret_cast<uintptr_t>(to + i) % 16 == 0) {
    *reinterpret_cast<float4*>(to + i) = values;
    return;
  }
  const float list[kElements] = {values.x, values.y, values.z, values.w};
  for (int e = 0; e < kElements && i + e < dim; ++e) to[i + e] = list[e];
}

__device__ inline void add(float4& sum, float4 value) {
  sum.x += value.x, sum.y += value.y, sum.z += value.z, sum.w += value.w;
}
__device__ inline float4 scaled(float4 value, float by) {
  return {value.x * by, value.y * by, value.z * by, value.w * by};
}
__device__ inline float4 all_equal(float value) { return {value, value, value, value}; }

/// Returns elements [i, i + 4) of row `place`, or the default if `place` is negative.
template <bool kOnlyF32 = false, RowsThrough kThrough = RowsThrough::l2>
__device__ float4 elements_at(const CachePool& pool, float default_value, int32_t place, float scale, int64_t i) {
  return place >= 0 ? load_elements<kOnlyF32, kThrough>(pool, static_cast<uint32_t>(place), i, scale)
                    : all_equal(default_value);
}

}  // namespace hctr::ops
