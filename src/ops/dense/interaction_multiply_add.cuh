// Interaction in f32 by multiply-adds. A warp computes one sample, whose vectors X [count, dim] are copied to shared
// memory once. Forward, a lane computes 4 x 4 pairs. Backward, a lane computes four columns of the gradients of some
// vectors. For 64 multiply-adds a lane issues eight 16-byte loads forward, and four backward.
#pragma once

#include "ops/dense/interaction.cuh"
#include "ops/dense/interaction_tensor_cores.cuh"

namespace hctr::ops {

constexpr int kSideOfPairs = 4;  ///< vectors per side of a lane's tile
/// Maximum number of vectors. The tiles of more vectors would need more than the 32 lanes of a warp.
constexpr int kMostMultiplied = 28;

/// Indices (i, j), j <= i, of tile n of a triangle, counted row by row.
__device__ inline void tile_at(int n, int& i, int& j) {
  i = static_cast<int>((sqrtf(8.0f * static_cast<float>(n) + 1.0f) - 1.0f) / 2.0f);
  while (i * (i + 1) / 2 > n) --i;
  while ((i + 1) * (i + 2) / 2 <= n) ++i;
  j = n - i * (i + 1) / 2;
}

/// Calls body(`one`, `other`, s, t) for each pair of vectors `other` < `one` of tile (i, j), where `one` = i + s * side
/// and `other` = j + t * side. A diagonal tile contains each pair twice, but body is called once per pair.
template <class Body>
__device__ inline void for_pairs(int i, int j, int side, int count, const Body& body) {
#pragma unroll
  for (int s = 0; s < kSideOfPairs; ++s)
#pragma unroll
    for (int t = 0; t < kSideOfPairs; ++t) {
      const int one = i + s * side, other = j + t * side;
      if (one >= count || other >= count || one == other || (i == j && one < other)) continue;
      body(max(one, other), min(one, other), s, t);
    }
}

/// Like interaction(), in f32 by multiply-adds. Shapes as in interaction(); at most kMostMultiplied vectors; every
/// vector and every row of y is aligned to 16 bytes. Shared memory: layout.total * 16 bytes per warp. One side of a
/// tile consists of the vectors i, i + side, i + 2 side, ..., so that adjacent lanes read adjacent vectors. The odd
/// stride in 16-byte units avoids bank conflicts.
__global__ void __launch_bounds__(64)
    interaction_multiply_add_kernel(Vectors<float> x, InteractionLayout layout, View<float, 2> y) {
  cuda::start_early();
  using namespace tensor_cores;
  extern __shared__ __align__(16) uint4 shared[];
  const int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  uint4* const vectors = shared + warp * layout.total;
  float* const out = reinterpret_cast<float*>(vectors);  // a row of y: vector 0, then the pairs
  const int side = (x.count + kSideOfPairs - 1) / kSideOfPairs, tiles = side * (side + 1) / 2;
  const int pairs = static_cast<int>(pairs_of(x.count)), width = x.dim + pairs + 1;
  int i, j;
  tile_at(min(lane, tiles - 1), i, j);
  const float4 *left[kSideOfPairs], *right[kSideOfPairs];
#pragma unroll
  for (int t = 0; t < kSideOfPairs; ++t) {  // clamps indices past the end; the results are not written
    left[t] = reinterpret_cast<const float4*>(vectors + min(i + t * side, x.count - 1) * layout.stride);
    right[t] = reinterpret_cast<const float4*>(vectors + min(j + t * side, x.count - 1) * layout.stride);
  }
  for (int64_t b = static_cast<int64_t>(blockIdx.x) * warps + warp; b < y.size(0);
       b += static_cast<int64_t>(gridDim.x) * warps) {
    load_sample(x, layout, b, lane, vectors);
    wait_for_copies();
    __syncwarp();
    float dot[kSideOfPairs][kSideOfPairs] = {};
#pragma unroll 2
    for (int k = 0; k < layout.chunks; ++k) {
      float4 a[kSideOfPairs], c[kSideOfPairs];
#pragma unroll
      for (int t = 0; t < kSideOfPairs; ++t) a[t] = left[t][k], c[t] = right[t][k];
#pragma unroll
      for (int s = 0; s < kSideOfPairs; ++s)
#pragma unroll
        for (int t = 0; t < kSideOfPairs; ++t) {
          dot[s][t] += a[s].x * c[t].x;
          dot[s][t] += a[s].y * c[t].y;
          dot[s][t] += a[s].z * c[t].z;
          dot[s][t] += a[s].w * c[t].w;
        }
    }
    __syncwarp();
    if (lane < tiles)
      for_pairs(i, j, side, x.count, [&](int one, int other, int s, int t) {
        out[x.dim + static_cast<int>(pairs_of(one)) + other] = dot[s][t];
      });
    if (lane == 0) out[x.dim + pairs] = 0;
    __syncwarp();
    uint4* const to = reinterpret_cast<uint4*>(y.row(b));
    for (int n = lane; n < width / 4; n += 32) to[n] = vectors[n];
    for (int n = width / 4 * 4 + lane; n < width; n += 32) y.row(b)[n] = out[n];
    __syncwarp();
  }
}

/// How a warp divides the gradients of a sample. Each of the first `lanes` lanes computes four columns of the vectors 0
/// to rows - 1. The next `lanes` lanes compute the same columns of the next `rows` vectors, and so on.
struct GradientLanes {
  int lanes, rows;

  static GradientLanes of(int dim, int count) {
    int lanes = 32;
    while (lanes > 1 && 4 * (lanes / 2) >= dim) lanes /= 2;
    const int each = (count + 32 / lanes - 1) / (32 / lanes);
    return {lanes, each <= 4 ? 4 : each <= 8 ? 8 : each <= 16 ? 16 : kMostMultiplied};
  }
};

/// The layout of a warp's shared memory. S, the matrix of the pairs' gradients, has a zero diagonal and zero padding
/// after its rows.
inline InteractionLayout multiply_add_layout(int dim, int count, const GradientLanes& each) {
  InteractionLayout layout = InteractionLayout::of<float>(dim, count, false, false);
  layout.pairs_stride = 32 / each.lanes * each.rows / 4;
  layout.pairs_begin = count * layout.stride;
  layout.dy_begin = layout.pairs_begin + count * layout.pairs_stride;
  layout.total = layout.dy_begin + (dim + static_cast<int>(pairs_of(count)) + 3) / 4;
  return layout;
}

/// Computes the gradients S X. Shapes as in interaction_backward(); dy and the gradients have the same alignment as x
/// and y in the forward kernel.
template <int kRows>
__global__ void __launch_bounds__(64)
    interaction_backward_multiply_add_kernel(Vectors<float> x, InteractionLayout layout, int lanes,
                                             View<const float, 2> dy, VectorGradients<float> dx) {
  cuda::start_early();
  using namespace tensor_cores;
  extern __shared__ __align__(16) uint4 shared[];
  const int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  // index of the lane's first vector
  const int lane = static_cast<int>(threadIdx.x) % 32, first = lane / lanes * kRows;
  uint4* const vectors = shared + warp * layout.total;
  float* const matrix = reinterpret_cast<float*>(vectors + layout.pairs_begin);
  float* const d_out = reinterpret_cast<float*>(vectors + layout.dy_begin);
  const int s_stride = 4 * layout.pairs_stride, width = x.dim + static_cast<int>(pairs_of(x.count));
  for (int n = layout.pairs_begin + lane; n < layout.dy_begin; n += 32) vectors[n] = {0, 0, 0, 0};
  for (int64_t b = static_cast<int64_t>(blockIdx.x) * warps + warp; b < dy.size(0);
       b += static_cast<int64_t>(gridDim.x) * warps) {
    __syncwarp();
    load_sample(x, layout, b, lane, vectors);
    const float* const d_row = dy.row(b);
    for (int n = lane; n < width / 4; n += 32) copy_async(vectors + layout.dy_begin + n, d_row + 4 * n);
    for (int n = width / 4 * 4 + lane; n < width; n += 32) d_out[n] = d_row[n];
    wait_for_copies();
    __syncwarp();
    for (int i = 1; i < x.count; ++i)
      if (lane < i) {
        const float pair = d_out[x.dim + static_cast<int>(pairs_of(i)) + lane];
        matrix[i * s_stride + lane] = pair;
        matrix[lane * s_stride + i] = pair;
      }
    __syncwarp();
    for (int k = lane % lanes; k < layout.chunks; k += lanes) {
      float4 sum[kRows] = {};
      const float4* v_at = reinterpret_cast<const float4*>(vectors) + k;
      const float* s_at = matrix + first;
#pragma unroll 1
      for (int j = 0; j < x.count; ++j, v_at += layout.stride, s_at += s_stride) {
        const float4 v = *v_at;
#pragma unroll
        for (int r = 0; r < kRows; r += 4) {
          const float4 s = *reinterpret_cast<const float4*>(s_at + r);
          const float four[4] = {s.x, s.y, s.z, s.w};
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            sum[r + q].x += four[q] * v.x;
            sum[r + q].y += four[q] * v.y;
            sum[r + q].z += four[q] * v.z;
            sum[r + q].w += four[q] * v.w;
          }
        }
      }
      if (first == 0) {
        const float4 own = reinterpret_cast<const float4*>(d_out)[k];
        sum[0].x += own.x, sum[0].y += own.y, sum[0].z += own.z, sum[0].w += own.w;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (first + r < x.count)
          if (float* const to = dx.at(b, first + r)) reinterpret_cast<float4*>(to)[k] = sum[r];
    }
  }
}

}  // namespace hctr::ops
