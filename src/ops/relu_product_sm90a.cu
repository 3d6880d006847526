// The product of gradients and weights, and the ReLU that its result passes through, for GPUs of compute
// capability 9.0.
//
// A block computes tiles of 64 kGroups x kN. One warp copies boxes of both operands to a ring in shared memory; kGroups
// groups of four warps multiply them, 64 rows each, and finish their tile: they apply the ReLU's gradient and dropout's
// factor, round, store and sum the columns. Three warps more read meanwhile from y which elements are positive, which
// costs memory what the products leave of its time.
#include "ops/relu_product.h"

#include <algorithm>

#include "device/cuda_runtime_calls.h"
#include "device/tensor_map.cuh"
#include "ops/element_loops.cuh"
#include "ops/hopper.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr int kDepth = 64;                  // of k in a box: 128 bytes, the widest swizzle
constexpr int kBoxBytes = 64 * kDepth * 2;  // 64 rows of it
constexpr size_t kRingBytes = 192 * 1024;

template <int kGroups_, int kN_>
struct Tiling {
  static constexpr int kGroups = kGroups_, kN = kN_;
  static constexpr int kM = 64 * kGroups, kThreads = 128 * (kGroups + 1);
  static constexpr int kBoxesA = kGroups, kBoxesB = kN / 64;
  static constexpr int kStageBytes = (kBoxesA + kBoxesB) * kBoxBytes;
  static constexpr int kStages = std::min<int>(8, kRingBytes / kStageBytes);
  static constexpr int kConsumers = 128 * kGroups, kMaskBytes = kM * kN / 8, kSumBytes = kGroups * 4 * kN * 4;
  // Two masks, so that the next tile's is ready; and the address is rounded up to the 1,024 bytes of an atom.
  static constexpr size_t kSharedBytes =
      kStages * kStageBytes + 2 * kMaskBytes + kSumBytes + (2 * kStages + 4) * 8 + 1024;
};
using Large = Tiling<2, 256>;
using Middle = Tiling<2, 128>;
using Small = Tiling<1, 64>;

struct ProductShape {
  int m, n, k;
};

/// What becomes of a product p: d_z = y > 0 ? factor p : 0. `sums`: of the columns of d_z, for 64 rows each.
template <class T>
struct Finish {
  View<const T, 2> y;
  View<T, 2> d_z;
  float factor;
  float* sums;
};

template <class T>
__device__ inline uint32_t pack(float low, float high) {
  uint32_t both;
  if constexpr (std::is_same_v<T, BFloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

template <class T>
__device__ inline float unpack(uint32_t both, int which) {
  T value;
  value.bits = static_cast<uint16_t>(both >> (16 * which));
  return static_cast<float>(value);
}

/// A thread's position in a tile: its first row and column.
struct TilePosition {
  int row, column, group, lane, thread;
};

template <class Tiles>
__device__ inline TilePosition position_in(int tile_m, int tile_n, int consumer) {
  const int lane = consumer % 32, warp = consumer / 32 % 4, group = consumer / 128;
  return {tile_m * Tiles::kM + 64 * group + 16 * warp + lane / 4, tile_n * Tiles::kN + 2 * (lane % 4), group, lane,
          consumer % 128};
}

/// Which of eight adjacent elements are positive: bit c for element c. NaN is not.
template <class T>
__device__ inline uint32_t positive(const uint4& eight) {
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

/// Reads the mask of a tile, kN / 8 bytes a row, by threads 0 to kThreads - 1, of which this is `t`. Rows of y begin at
/// multiples of 16 bytes.
template <class Tiles, int kThreads, class T>
__device__ inline void read_mask(const View<const T, 2>& y, const ProductShape& shape, int tile_m, int tile_n, int t,
                                 uint8_t* mask) {
  constexpr int kPerRow = Tiles::kN / 8, kAtOnce = 16;
#pragma unroll 1
  for (int begin = t; begin < Tiles::kMaskBytes; begin += kAtOnce * kThreads) {
    uint4 eight[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int chunk = begin + i * kThreads;
      const int row = tile_m * Tiles::kM + chunk / kPerRow, column = tile_n * Tiles::kN + chunk % kPerRow * 8;
      eight[i] = make_uint4(0, 0, 0, 0);
      if (chunk < Tiles::kMaskBytes && row < shape.m && column < shape.n)
        eight[i] = *reinterpret_cast<const uint4*>(y.row(row) + column);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (const int chunk = begin + i * kThreads; chunk < Tiles::kMaskBytes)
        mask[chunk] = static_cast<uint8_t>(positive<T>(eight[i]));
  }
}

/// Lanes 4 i to 4 i + 3 have two columns each of four chunks of eight; afterwards each has one whole chunk.
__device__ inline void exchange_in_quad(uint32_t (&v)[4], int lane) {
  const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? v[i] : v[i + 1], 1);
    (odd ? v[i] : v[i + 1]) = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? v[i] : v[i + 2], 2);
    (upper ? v[i] : v[i + 2]) = got;
  }
}

/// Stores the columns that `out` holds, 16 bytes a lane.
template <class T>
__device__ inline void store(const View<T, 2>& y, const ProductShape& shape, const TilePosition& at, int q,
                             const uint32_t (&out)[16]) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint32_t v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = out[2 * (4 * half + k) + r];
      exchange_in_quad(v, at.lane);
      const int row = at.row + 8 * r;
      const int column = at.column - 2 * (at.lane % 4) + 64 * q + 32 * half + 8 * (at.lane % 4);
      if (row >= shape.m || column >= shape.n) continue;
      T* to = y.row(row) + column;
      if (column + 8 <= shape.n) {
        *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
      } else {
#pragma unroll
        for (int c = 0; c < 8; ++c)
          if (column + c < shape.n) to[c].bits = static_cast<uint16_t>(v[c / 2] >> (16 * (c % 2)));
      }
    }
}

/// The sums over the 16 rows of a warp of the columns that `out` holds, each of which eight lanes have: in three steps
/// lanes give each other half of their columns. Lane l ends with columns j = l / 4 and its two, in sum[0] and sum[1].
template <class T>
__device__ inline void sum_of_warp_rows(const uint32_t (&out)[16], int lane, float (&sum)[2]) {
  float s[16];  // [j][e]
#pragma unroll
  for (int j = 0; j < 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) s[2 * j + e] = unpack<T>(out[2 * j], e) + unpack<T>(out[2 * j + 1], e);
  const auto halve = [&]<int kHalf>(std::integral_constant<int, kHalf>) {  // of the values that a lane has
    const bool upper = lane & (2 * kHalf);                                 // bit 16, 8, 4
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float mine = upper ? s[kHalf + i] : s[i], other = upper ? s[i] : s[kHalf + i];
      s[i] = mine + __shfl_xor_sync(~0u, other, 2 * kHalf);
    }
  };
  halve(std::integral_constant<int, 8>());
  halve(std::integral_constant<int, 4>());
  halve(std::integral_constant<int, 2>());
  sum[0] = s[0];
  sum[1] = s[1];
}

/// Finishes a tile whose products the threads of a group hold in d. `of_warps`: memory for four sums of each column.
template <class Tiles, class T>
__device__ inline void finish_tile(const Finish<T>& end, const ProductShape& shape, int tile_m, int tile_n,
                                   int consumer, const uint8_t* mask, const float* d, float* of_warps) {
  const TilePosition at = position_in<Tiles>(tile_m, tile_n, consumer);
  const int warp = at.thread / 32, first_row = at.row - at.lane / 4 - 16 * warp;
  mask += (at.row - tile_m * Tiles::kM) * (Tiles::kN / 8);
  float sums[Tiles::kN / 64][2];
#pragma unroll
  for (int q = 0; q < Tiles::kN / 64; ++q) {
    uint32_t out[16];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint2 bits = *reinterpret_cast<const uint2*>(mask + r * 8 * (Tiles::kN / 8) + q * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const uint32_t both = (j < 4 ? bits.x : bits.y) >> (8 * (j % 4) + 2 * (at.lane % 4));
        const float* p = d + 32 * q + 4 * j + 2 * r;
        out[2 * j + r] = pack<T>(both & 1 ? end.factor * p[0] : 0.0f, both & 2 ? end.factor * p[1] : 0.0f);
      }
    }
    sum_of_warp_rows<T>(out, at.lane, sums[q]);
    store(end.d_z, shape, at, q, out);
  }
  // of the four warps, in order
#pragma unroll
  for (int q = 0; q < Tiles::kN / 64; ++q)
    *reinterpret_cast<float2*>(of_warps + warp * Tiles::kN + 64 * q + 8 * (at.lane / 4) + 2 * (at.lane % 4)) =
        make_float2(sums[q][0], sums[q][1]);
  synchronize_group(1 + at.group, 128);
  for (int c = at.thread; c < Tiles::kN; c += 128) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) sum += of_warps[w * Tiles::kN + c];
    const int column = tile_n * Tiles::kN + c;
    if (column < shape.n && first_row < shape.m) end.sums[int64_t{first_row / 64} * shape.n + column] = sum;
  }
  synchronize_group(1 + at.group, 128);
}

template <class Tiles>
struct SharedMemory {
  std::byte* ring;
  uint8_t* masks;   ///< [2][kMaskBytes]
  float* of_warps;  ///< [kGroups][4][kN]
  uint64_t *full, *empty, *mask_read, *mask_used;
  __device__ static SharedMemory of(std::byte* dynamic) {
    const uint32_t misaligned = shared_address(dynamic) % 1024;
    std::byte* ring = dynamic + (misaligned ? 1024 - misaligned : 0);
    std::byte* masks = ring + Tiles::kStages * Tiles::kStageBytes;
    std::byte* of_warps = masks + 2 * Tiles::kMaskBytes;
    auto* full = reinterpret_cast<uint64_t*>(of_warps + Tiles::kSumBytes);
    return {ring,
            reinterpret_cast<uint8_t*>(masks),
            reinterpret_cast<float*>(of_warps),
            full,
            full + Tiles::kStages,
            full + 2 * Tiles::kStages,
            full + 2 * Tiles::kStages + 2};
  }
};

constexpr int kMaskThreads = 96;

/// So many tiles a block at most: then blocks that start late, because other kernels run, leave theirs to others.
constexpr int kMostTiles = 2;

/// The tiles of a block: all columns of some rows before the next rows.
template <class Tiles>
struct TileList {
  int columns, next, end;
  __device__ TileList(const ProductShape& shape, int each)
      : columns((shape.n + Tiles::kN - 1) / Tiles::kN),
        next(static_cast<int>(blockIdx.x) * each),
        end(min(next + each, columns * ((shape.m + Tiles::kM - 1) / Tiles::kM))) {}
  __device__ bool take(int& m, int& n) {
    if (next >= end) return false;
    m = next / columns;
    n = next % columns;
    ++next;
    return true;
  }
};

/// finish(a [m, k] b) for b [n, k], by blocks with `each` tiles.
template <class Tiles, class T>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    gradient_through_relu_kernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                 ProductShape shape, int each, Finish<T> end) {
  extern __shared__ std::byte dynamic[];
  const auto shared = SharedMemory<Tiles>::of(dynamic);
  const int group = static_cast<int>(threadIdx.x) / 128, depth_steps = (shape.k + kDepth - 1) / kDepth;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Tiles::kStages; ++s) {
      init_barrier(shared.full + s, 1);
      init_barrier(shared.empty + s, Tiles::kGroups);
    }
    for (int p = 0; p < 2; ++p) {
      init_barrier(shared.mask_read + p, kMaskThreads);
      init_barrier(shared.mask_used + p, Tiles::kConsumers);
    }
    fence_barrier_init();
  }
  __syncthreads();

  TileList<Tiles> tiles(shape, each);
  int stage = 0, tile_m, tile_n, turn = 0;  // of the two masks
  uint32_t parity = 0;
  const auto advance = [&] {
    if (++stage == Tiles::kStages) stage = 0, parity ^= 1;
  };
  if (group == 0) {
    if constexpr (Tiles::kGroups == 2) give_registers<120>();
    if (threadIdx.x == 0) {
      while (tiles.take(tile_m, tile_n))
        for (int step = 0; step < depth_steps; ++step, advance()) {
          wait_for(shared.empty + stage, parity ^ 1);
          std::byte* at = shared.ring + stage * Tiles::kStageBytes;
          uint64_t* full = shared.full + stage;
          arrive_and_expect(full, Tiles::kStageBytes);
          const int k = step * kDepth;
          load_box(at, a, k, tile_m * Tiles::kM, full);
          at += Tiles::kBoxesA * kBoxBytes;
          for (int i = 0; i < Tiles::kBoxesB; ++i)
            load_box(at + i * kBoxBytes, b, k, tile_n * Tiles::kN + 64 * i, full);
        }
    } else if (threadIdx.x >= 32) {
      for (; tiles.take(tile_m, tile_n); ++turn) {
        const int p = turn % 2;
        wait_for(shared.mask_used + p, static_cast<uint32_t>(turn / 2 % 2) ^ 1);
        read_mask<Tiles, kMaskThreads>(end.y, shape, tile_m, tile_n, static_cast<int>(threadIdx.x) - 32,
                                       shared.masks + p * Tiles::kMaskBytes);
        arrive(shared.mask_read + p);
      }
    }
  } else {
    if constexpr (Tiles::kGroups == 2) take_registers<192>();
    const int consumer = static_cast<int>(threadIdx.x) - 128;
    float d[Tiles::kN / 2];
    for (; tiles.take(tile_m, tile_n); ++turn) {
      int before = -1;
      for (int step = 0; step < depth_steps; ++step, advance()) {
        wait_for(shared.full + stage, parity);
        const std::byte* at = shared.ring + stage * Tiles::kStageBytes;
        uint64_t first = describe_matrix(at + (group - 1) * kBoxBytes);
        uint64_t second = describe_matrix(at + Tiles::kBoxesA * kBoxBytes);
        begin_products();
#pragma unroll
        for (int k = 0; k < kDepth / 16; ++k) {
          multiply<T, Tiles::kN>(d, first, second, step > 0 || k > 0);
          first += 32 >> 4;
          second += 32 >> 4;
        }
        commit_products();
        wait_for_products<1>();
        if (before >= 0 && consumer % 128 == 0) arrive(shared.empty + before);
        before = stage;
      }
      wait_for_products<0>();
      if (consumer % 128 == 0) arrive(shared.empty + before);
      const int p = turn % 2;
      wait_for(shared.mask_read + p, static_cast<uint32_t>(turn / 2 % 2));
      finish_tile<Tiles>(end, shape, tile_m, tile_n, consumer, shared.masks + p * Tiles::kMaskBytes, d,
                         shared.of_warps + (group - 1) * 4 * Tiles::kN);
      arrive(shared.mask_used + p);
    }
  }
}

/// The same for k = 1, as behind a layer with one output: the products are a[row] b[column].
template <class Tiles, class T>
__global__ void __launch_bounds__(Tiles::kConsumers)
    outer_product_through_relu_kernel(const T* a, int64_t a_step, const T* b, int64_t b_step, ProductShape shape,
                                      Finish<T> end) {
  __shared__ float of_warps[Tiles::kGroups][4][Tiles::kN];
  __shared__ alignas(16) uint8_t mask[Tiles::kMaskBytes];
  const int columns = (shape.n + Tiles::kN - 1) / Tiles::kN, tile = static_cast<int>(blockIdx.x);
  const int tile_m = tile / columns, tile_n = tile % columns, consumer = static_cast<int>(threadIdx.x);
  read_mask<Tiles, Tiles::kConsumers>(end.y, shape, tile_m, tile_n, consumer, mask);
  const TilePosition at = position_in<Tiles>(tile_m, tile_n, consumer);
  float d[Tiles::kN / 2], left[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) left[r] = at.row + 8 * r < shape.m ? static_cast<float>(a[(at.row + 8 * r) * a_step]) : 0;
#pragma unroll
  for (int j = 0; j < Tiles::kN / 8; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int column = at.column + 8 * j + e;
      const float right = column < shape.n ? static_cast<float>(b[column * b_step]) : 0;
      d[4 * j + e] = left[0] * right;
      d[4 * j + 2 + e] = left[1] * right;
    }
  __syncthreads();
  finish_tile<Tiles>(end, shape, tile_m, tile_n, consumer, mask, d, &of_warps[at.group][0][0]);
}

/// d_bias[j] = the sum of sums[., j] in order of the parts: 32 columns a block, whose 32 warps sum every 32nd part
/// first.
template <class Out>
__global__ void __launch_bounds__(1024) sum_parts_kernel(const float* sums, int parts, int columns, Out* d_bias) {
  __shared__ float shared[32][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int j = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
  if (j < columns)
#pragma unroll 4
    for (int part = warp; part < parts; part += 32) sum += sums[int64_t{part} * columns + j];
  shared[warp][lane] = sum;
  __syncthreads();
  const float total = cuda::warp_sum(shared[lane][warp]);  // of column `warp`
  const int column = static_cast<int>(blockIdx.x) * 32 + warp;
  if (lane == 0 && column < columns) d_bias[column] = static_cast<Out>(total);
}

ProductShape product_shape(const Tensor& y, int64_t k) {
  return {static_cast<int>(y.dim(0)), static_cast<int>(y.dim(1)), static_cast<int>(k)};
}

template <class Tiles>
int64_t tiles_of(const ProductShape& shape) {
  return int64_t{(shape.m + Tiles::kM - 1) / Tiles::kM} * ((shape.n + Tiles::kN - 1) / Tiles::kN);
}

/// Calls body(Tiles) with the tiles for this shape of d_z: the largest that give every multiprocessor one.
template <class Body>
void with_tiles(const ProductShape& shape, Body&& body) {
  const int processors = hctr::cuda::multiprocessors();
  const auto take = [&]<class Tiles, class Narrower>(Tiles, Narrower) {
    const int wide = (shape.n + Tiles::kN - 1) / Tiles::kN * Tiles::kN;
    const int narrow = (shape.n + Narrower::kN - 1) / Narrower::kN * Narrower::kN;
    return wide <= narrow && tiles_of<Tiles>(shape) >= processors;
  };
  if (take(Large(), Middle())) return body(Large());
  if (take(Middle(), Small())) return body(Middle());
  body(Small());
}

void add_parts(Context& ctx, const float* sums, const ProductShape& shape, const Tensor& d_bias) {
  const int parts = (shape.m + 63) / 64;
  const cuda::Grid grid{(shape.n + 31) / 32, 1024, 0};
  dispatch_float(d_bias.dtype(), [&]<class Out>() {
    cuda::launch(ctx, "gradient_through_relu", grid, sum_parts_kernel<Out>, sums, parts, shape.n, d_bias.data<Out>());
  });
}

/// In tiles that leave room for several blocks on a multiprocessor: memory's latency is all there is to hide.
template <class T>
void start_outer_product(Context& ctx, const Tensor& d_out, const Tensor& w, const ProductShape& shape,
                         const Finish<T>& end) {
  const auto start = [&]<class Tiles>(Tiles) {
    cuda::launch(ctx, "outer_product_through_relu", cuda::Grid{tiles_of<Tiles>(shape), Tiles::kConsumers, 0},
                 outer_product_through_relu_kernel<Tiles, T>, d_out.data<const T>(), d_out.row_stride(),
                 w.data<const T>(), w.row_stride(), shape, end);
  };
  if (tiles_of<Middle>(shape) >= 4 * hctr::cuda::multiprocessors()) return start(Middle());
  start(Small());
}

template <class Body>
void with_type(DType dtype, Body&& body) {
  if (dtype == DType::bf16) return body.template operator()<BFloat16>();
  body.template operator()<Half>();
}

}  // namespace

void hopper::gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z,
                                   Tensor d_bias, float* sums) {
  const ProductShape shape = product_shape(d_z, w.dim(1));
  with_type(d_z.dtype(), [&]<class T>() {
    const Finish<T> end{y.view<const T, 2>(), d_z.view<T, 2>(), factor, sums};
    if (shape.k == 1) return start_outer_product(ctx, d_out, w, shape, end);
    with_tiles(shape, [&]<class Tiles>(Tiles) {
      const int64_t tiles = tiles_of<Tiles>(shape), at_once = hctr::cuda::multiprocessors();
      const int64_t rounds = (tiles + at_once - 1) / at_once;
      const int64_t each = std::min<int64_t>(rounds, kMostTiles);
      cuda::launch(ctx, "gradient_through_relu",
                   cuda::Grid{(tiles + each - 1) / each, Tiles::kThreads, Tiles::kSharedBytes},
                   gradient_through_relu_kernel<Tiles, T>, hctr::cuda::tensor_map(d_out, kDepth, Tiles::kM),
                   hctr::cuda::tensor_map(w, kDepth, 64), shape, static_cast<int>(each), end);
    });
  });
  add_parts(ctx, sums, shape, d_bias);
}

}  // namespace hctr::ops
