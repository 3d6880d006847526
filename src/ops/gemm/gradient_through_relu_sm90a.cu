// The dgrad GEMM with ReLU's gradient in its epilogue, for compute capability 9.0. Helper warps read the signs of y
// while the GEMM runs.
#include "ops/gemm/fused_product.cuh"
#include "ops/gemm/gradient_through_relu.h"

namespace hctr::ops {
namespace {

/// Bit mask that shows which of eight adjacent elements are positive: bit c for element c. NaN is not positive.
template <class T>
__device__ uint32_t positive(const uint4& eight) {
  constexpr uint32_t kInfinity = std::is_same_v<T, BFloat16> ? 0x7f80 : 0x7c00;
  const uint32_t two[4] = {eight.x, eight.y, eight.z, eight.w};
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if ((two[i] & 0xffff) - 1 < kInfinity) bits |= 1u << (2 * i);
    if ((two[i] >> 16) - 1 < kInfinity) bits |= 2u << (2 * i);
  }
  return bits;
}

/// Whether any of eight adjacent f16 values is infinite or NaN. Such values have an exponent of only ones; adding 1 to
/// it carries into the sign bit.
__device__ inline bool any_not_finite(const uint4& eight) {
  const auto carries = [](uint32_t two) { return (two & 0x7c007c00) + 0x04000400; };
  return ((carries(eight.x) | carries(eight.y) | carries(eight.z) | carries(eight.w)) & 0x80008000) != 0;
}

/// Epilogue: d_z = y > 0 ? factor p : 0 for a GEMM result p. `sums`: column sums of d_z per 64 rows.
template <class T>
struct ThroughRelu {
  static constexpr bool kBias = false, kSums = true;
  View<const T, 2> y;
  float factor;
  float* sums;
  float* found;  ///< set to 1 if an element of an f16 y is not finite; null: not checked

  __device__ float finish(float product, float, bool keep) const { return keep ? factor * product : 0.0f; }

  /// Rows of y are aligned to 16 bytes. For positions outside y, the code uses the bits of other elements; the results
  /// at such positions are zero or not stored. No load is therefore conditional, and all loads of a thread overlap.
  template <class Tiles>
  __device__ void prepare(const hopper::ProductShape& shape, int tile_m, int tile_n, int t, uint8_t* mask,
                          float*) const {
    constexpr int kPerRow = Tiles::kN / 8, kChunks = Tiles::kM * kPerRow, kAtOnce = 32 / sizeof(T), kV = 16 / sizeof(T);
    const int last_row = shape.m - 1, last_column = (shape.n - 1) / kV * kV;
#pragma unroll 1
    for (int begin = t; begin < kChunks; begin += kAtOnce * hopper::kHelpers) {
      uint4 read[kAtOnce][8 / kV];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int chunk = min(begin + i * hopper::kHelpers, kChunks - 1);
        const T* const row = y.row(min(tile_m * Tiles::kM + chunk / kPerRow, last_row));
#pragma unroll
        for (int part = 0; part < 8 / kV; ++part)
          read[i][part] = *reinterpret_cast<const uint4*>(
              row + min(tile_n * Tiles::kN + chunk % kPerRow * 8 + part * kV, last_column));
      }
      if constexpr (std::is_same_v<T, Half>)
        if (found) {
          bool any = false;
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) any |= any_not_finite(read[i][0]);
          if (any) *found = 1;
        }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (const int chunk = begin + i * hopper::kHelpers; chunk < kChunks)
          mask[chunk / kPerRow * Tiles::kMaskStride + chunk % kPerRow] = static_cast<uint8_t>(bits_of(read[i]));
    }
  }

 private:
  __device__ static uint32_t bits_of(const uint4 (&eight)[sizeof(T) / 2]) {
    if constexpr (sizeof(T) == 2) {
      return positive<T>(eight[0]);
    } else {
      const uint32_t words[8] = {eight[0].x, eight[0].y, eight[0].z, eight[0].w,
                                 eight[1].x, eight[1].y, eight[1].z, eight[1].w};
      uint32_t bits = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) bits |= words[i] - 1 < 0x7f800000u ? 1u << i : 0;
      return bits;
    }
  }
};

}  // namespace

bool hopper::searches_beside_product(const Tensor& y) { return y.dtype() == DType::f16 && y.dim(1) % 8 == 0; }

void hopper::gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z,
                                   float* sums, OverflowSearch search) {
  dispatch_float(d_z.dtype(), [&]<class T>() {
    const ThroughRelu<T> epilogue{y.view<const T, 2>(), factor, sums, search.found};
    fused_product<T, false>(ctx, "gradient_through_relu", d_out, w, d_z, epilogue);
  });
}

}  // namespace hctr::ops
