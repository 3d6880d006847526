// The product of gradients and weights, and the ReLU that its result passes through, for GPUs of compute
// capability 9.0.
//
// A block computes tiles of 64 kGroups x kN. One warp copies boxes of both operands to a ring in shared memory; kGroups
// groups of four warps multiply them, 64 rows each, and finish their tile: they apply the ReLU's gradient and dropout's
// factor, round, store and sum the columns. Three warps more read meanwhile from y which elements are positive, which
// costs memory what the products leave of its time.
#include "ops/gradient_through_relu.h"

#include <algorithm>

#include "device/cuda_runtime_calls.h"
#include "device/tensor_map.cuh"
#include "ops/element_loops.cuh"
#include "ops/relu_tile.cuh"

namespace hctr::ops {
namespace {

using namespace hopper;

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
  cuda::start_early();

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

template <class Body>
void with_type(DType dtype, Body&& body) {
  if (dtype == DType::bf16) return body.template operator()<BFloat16>();
  body.template operator()<Half>();
}

}  // namespace

void hopper::gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z,
                                   float* sums) {
  const ProductShape shape = product_shape(d_z, w.dim(1));
  with_type(d_z.dtype(), [&]<class T>() {
    const Finish<T> end{y.view<const T, 2>(), d_z.view<T, 2>(), factor, sums};
    with_tiles(shape, [&]<class Tiles>(Tiles) {
      const int64_t tiles = tiles_of<Tiles>(shape), at_once = hctr::cuda::multiprocessors();
      const int64_t rounds = (tiles + at_once - 1) / at_once;
      const int64_t each = std::min<int64_t>(rounds, kMostTiles);
      cuda::launch(ctx, "gradient_through_relu",
                   cuda::early({(tiles + each - 1) / each, Tiles::kThreads, Tiles::kSharedBytes}),
                   gradient_through_relu_kernel<Tiles, T>, hctr::cuda::tensor_map(d_out, kDepth, Tiles::kM),
                   hctr::cuda::tensor_map(w, kDepth, 64), shape, static_cast<int>(each), end);
    });
  });
}

}  // namespace hctr::ops
