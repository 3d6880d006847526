// A GEMM with a fused epilogue, in one kernel for GPUs of compute capability 9.0.
//
// A block takes tiles of 64 kGroups x kN one after the other, or one tile alone where there are not more than blocks.
// One warp copies boxes of both operands to a ring in shared memory; kGroups groups of four warps multiply them, 64
// rows each, apply the epilogue, and hand the results to the TMA, which stores them while the next tile is
// multiplied. Three warps more prepare meanwhile a bit for each element of the tile, which says whether it becomes
// zero, and the biases of its columns.
//
// Epilogue concept, an End:
//   kBias, kSums                          whether it has a bias, and whether columns of the result are summed
//   prepare<Tiles>(shape, m, n, t, mask, bias)   by thread t of kHelpers, for tile (m, n)
//   finish(product, bias, keep)           the element
//   sums                                  [ceil(m / 64), n], with kSums
// Elements outside of the result that share 16 bytes with others are stored too: they are end(0), which must be zero
// where takes_fused_product() allows such elements.
#pragma once

#include "core/device/cuda_libraries.cuh"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"
#include "ops/gemm/product_tile.cuh"

namespace hctr::ops::hopper {

struct OperandMaps {
  CUtensorMap a, b;
};

/// Maps of both operands and of the result; `last`: for the last box of a tile of the result, if that is narrower.
struct ProductMaps {
  OperandMaps operands;
  CUtensorMap result, last;
};

/// The tiles of a GEMM, all columns of some rows before the next rows. Blocks fetch tiles dynamically: a block that
/// starts late, because another kernel holds its multiprocessor, leaves its tiles to others.
struct TileQueue {
  int tiles, columns;  ///< all; and those across
  uint32_t* next;      ///< 0 before and after the kernel

  /// The next tile, or -1. By one thread.
  __device__ int take() const {
    // Each block fetches one tile too many, and the last of these fetches resets the counter.
    const uint32_t tile = atomicInc(next, static_cast<uint32_t>(tiles) + gridDim.x - 1);
    return tile < static_cast<uint32_t>(tiles) ? static_cast<int>(tile) : -1;
  }
};

__device__ inline uint32_t parity_of(int turn) { return static_cast<uint32_t>(turn / 2 % 2); }

/// Copies the operands of one step.
template <class Tiles>
__device__ inline void load_step(const OperandMaps& maps, int m, int n, int k, std::byte* to, uint64_t* full) {
  arrive_and_expect(full, Tiles::kStageBytes);
  load_box(to, maps.a, k, m, full);
  to += Tiles::kBytesA;
#pragma unroll
  for (int i = 0; i < Tiles::kBoxesB; ++i) {
    if constexpr (Tiles::kTransposedB)
      load_box(to + i * Tiles::kBoxBytesB, maps.b, n + i * Tiles::kColumns, k, full);
    else
      load_box(to, maps.b, k, n, full);
  }
}

/// Runs in one thread: copies the operands of all steps of the tile at (m, n). `loaded(step)`: after those of each.
template <class Tiles, class Memory, class Loaded>
__device__ inline void load_tile(const OperandMaps& maps, const ProductShape& shape, int m, int n, const Memory& shared,
                                 RingPosition<Tiles>& at, Loaded loaded) {
  for (int k = 0, step = 0; k < shape.k; k += Tiles::kDepth, ++step, at.advance()) {
    wait_for(shared.empty + at.stage, at.parity ^ 1);
    load_step<Tiles>(maps, m, n, k, shared.ring + at.stage * Tiles::kStageBytes, shared.full + at.stage);
    loaded(step);
  }
}

/// Runs in one thread: fetches tile numbers, publishes them to the other threads, and copies operands. The next tile is
/// published while the current one is multiplied, as soon as a mask is free: when all threads have started that tile,
/// the previous one is finished.
template <class Tiles, class Memory>
__device__ inline void load_tiles(const OperandMaps& maps, const ProductShape& shape, const TileQueue& queue,
                                  const Memory& shared) {
  const auto tell = [&](int turn, int tile) {
    const int p = turn % 2;
    wait_for(shared.mask_used + p, parity_of(turn) ^ 1);
    shared.tile[p] = tile;
    arrive(shared.told + p);
  };
  RingPosition<Tiles> at;
  int tile = queue.take();
  tell(0, tile);
  for (int turn = 0; tile >= 0; ++turn) {
    const int m = tile / queue.columns * Tiles::kM, n = tile % queue.columns * Tiles::kN;
    tile = queue.take();  // the next tile number arrives while this tile is computed
    bool told = false;
    load_tile<Tiles>(maps, shape, m, n, shared, at, [&](int step) {
      if (step == Tiles::kStages) tell(turn + 1, tile), told = true;
    });
    if (!told) tell(turn + 1, tile);
  }
}

/// Multiplies the operands of one pipeline stage for the 64 rows of a group.
template <class Tiles>
__device__ inline void multiply_step(float (&d)[Tiles::kN / 2], const std::byte* at, int group, bool first_step) {
  using T = typename Tiles::T;
  uint64_t a = describe_matrix(at + group * kBoxBytes);
  const std::byte* at_b = at + Tiles::kBytesA;
  uint64_t b = Tiles::kTransposedB ? describe_transposed(at_b, kBoxBytes) : describe_matrix(at_b);
  begin_products();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    multiply<T, Tiles::kN, false, Tiles::kTransposedB>(d, a, b, !first_step || k > 0);
    a += 32 >> 4;
    b += (Tiles::kTransposedB ? 16 * kBoxRowBytes : 32) >> 4;
  }
  commit_products();
}

/// Multiplies a tile, of which each group has 64 rows. `at`: the position in the ring, for the next tile too.
template <class Tiles, class Memory>
__device__ __forceinline__ void multiply_tile(float (&d)[Tiles::kN / 2], const Memory& shared,
                                              const ProductShape& shape, int group, int thread,
                                              RingPosition<Tiles>& at) {
  int before = -1;
  for (int k = 0; k < shape.k; k += Tiles::kDepth, at.advance()) {
    wait_for(shared.full + at.stage, at.parity);
    multiply_step<Tiles>(d, shared.ring + at.stage * Tiles::kStageBytes, group, k == 0);
    wait_for_products<1>();
    if (before >= 0 && thread == 0) arrive(shared.empty + before);
    before = at.stage;
  }
  wait_for_products<0>();
  if (thread == 0) arrive(shared.empty + before);
}

/// Epilogue of a tile that a group has multiplied; hands the result to the TMA. `mask`, `biases`: of the tile.
template <class Tiles, class End, class Done>
__device__ __forceinline__ void finish_tile(const ProductMaps& maps, const ProductShape& shape, const End& end,
                                            int tile_m, int tile_n, int group, int thread,
                                            const float (&d)[Tiles::kN / 2], const uint8_t* mask, const float* biases,
                                            std::byte* result, Done finished) {
  finish_products<Tiles>(end, mask, biases, group, thread, d, result);
  finished();
  fence_for_stores();
  synchronize_group(1 + group, 128);
  const int row = tile_m * Tiles::kM + 64 * group, column = tile_n * Tiles::kN;
  if (thread == 0) store_result<Tiles>(maps.result, maps.last, row, column, result);
  if constexpr (End::kSums)
    if (row < shape.m)
      sum_columns<Tiles>(result, thread, shape.n - column, end.sums + int64_t{row / 64} * shape.n + column);
}

template <class Tiles, class End>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    fused_product_kernel(const __grid_constant__ ProductMaps maps, ProductShape shape, TileQueue queue, End end) {
  extern __shared__ std::byte dynamic_of_product[];
  const TileMemory<Tiles> shared(dynamic_of_product);
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();
  hctr::cuda::start_early();

  if (threadIdx.x < 128) {
    if constexpr (Tiles::kGroups == 2) give_registers<120>();
    if (threadIdx.x == 0) {
      load_tiles<Tiles>(maps.operands, shape, queue, shared);
    } else if (threadIdx.x >= 32) {
      for (int turn = 0;; ++turn) {
        const int p = turn % 2;
        wait_for(shared.told + p, parity_of(turn));
        const int tile = shared.tile[p];
        if (tile < 0) return;
        end.template prepare<Tiles>(shape, tile / queue.columns, tile % queue.columns,
                                    static_cast<int>(threadIdx.x) - 32, shared.masks + p * Tiles::kMaskBytes,
                                    shared.biases + p * Tiles::kN);
        arrive(shared.mask_ready + p);
      }
    }
    return;
  }

  if constexpr (Tiles::kGroups == 2) take_registers<192>();
  const int group = static_cast<int>(threadIdx.x) / 128 - 1, thread = static_cast<int>(threadIdx.x) % 128;
  std::byte* const result = shared.results + group * Tiles::kResultBytes;
  RingPosition<Tiles> at;
  for (int turn = 0;; ++turn) {
    const int p = turn % 2;
    wait_for(shared.told + p, parity_of(turn));
    const int tile = shared.tile[p];
    if (tile < 0) break;
    float d[Tiles::kN / 2];
    multiply_tile<Tiles>(d, shared, shape, group, thread, at);
    if (thread == 0) wait_for_stores();  // stores of the previous tile
    wait_for(shared.mask_ready + p, parity_of(turn));
    synchronize_group(1 + group, 128);
    finish_tile<Tiles>(maps, shape, end, tile / queue.columns, tile % queue.columns, group, thread, d,
                       shared.masks + p * Tiles::kMaskBytes, shared.biases + p * Tiles::kN, result,
                       [&] { arrive(shared.mask_used + p); });
  }
  if (thread == 0) wait_for_stores();
}

/// Single-tile variant: block i has tile i, of `columns` columns, without a tile scheduler. The scheduler would take a
/// tenth of the time of a small GEMM.
template <class Tiles, class End>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    single_tile_kernel(const __grid_constant__ ProductMaps maps, ProductShape shape, int columns, End end) {
  extern __shared__ std::byte dynamic_of_product[];
  const TileMemory<Tiles> shared(dynamic_of_product);
  if (threadIdx.x == 0) {
    prefetch_map(maps.operands.a);
    prefetch_map(maps.operands.b);
    prefetch_map(maps.result);
    shared.init_barriers();
  }
  __syncthreads();
  hctr::cuda::start_early();

  const int tile_m = static_cast<int>(blockIdx.x) / columns, tile_n = static_cast<int>(blockIdx.x) % columns;
  RingPosition<Tiles> at;
  if (threadIdx.x < 128) {
    if constexpr (Tiles::kGroups == 2) give_registers<120>();
    if (threadIdx.x == 0) {
      load_tile<Tiles>(maps.operands, shape, tile_m * Tiles::kM, tile_n * Tiles::kN, shared, at, [](int) {});
    } else if (threadIdx.x >= 32) {
      end.template prepare<Tiles>(shape, tile_m, tile_n, static_cast<int>(threadIdx.x) - 32, shared.masks,
                                  shared.biases);
      arrive(shared.mask_ready);
    }
    return;
  }

  if constexpr (Tiles::kGroups == 2) take_registers<192>();
  const int group = static_cast<int>(threadIdx.x) / 128 - 1, thread = static_cast<int>(threadIdx.x) % 128;
  float d[Tiles::kN / 2];
  multiply_tile<Tiles>(d, shared, shape, group, thread, at);
  wait_for(shared.mask_ready, 0);
  finish_tile<Tiles>(maps, shape, end, tile_m, tile_n, group, thread, d, shared.masks, shared.biases,
                     shared.results + group * Tiles::kResultBytes, [] {});
  if (thread == 0) wait_for_stores();
}

/// Those that a GEMM may take.
inline int64_t multiprocessors_for(const Context& ctx) {
  const int all = hctr::cuda::multiprocessors();
  return ctx.multiprocessors() > 0 ? std::min(ctx.multiprocessors(), all) : all;
}

/// Estimated cycles of a GEMM on this many multiprocessors with these tiles, from multiplications and operand copies
/// out of the cache; used only to choose tiles.
template <class Tiles>
double product_cycles(const ProductShape& shape, int64_t processors) {
  constexpr double kMultiplications = sizeof(typename Tiles::T) == 2 ? 2048 : 1024, kCopied = 36, kBegin = 2500;
  const double per_step =
      std::max(double{Tiles::kM} * Tiles::kN * Tiles::kDepth / kMultiplications, Tiles::kStageBytes / kCopied);
  const int64_t tiles = int64_t{(shape.m + Tiles::kM - 1) / Tiles::kM} * ((shape.n + Tiles::kN - 1) / Tiles::kN);
  const int64_t rounds = (tiles + processors - 1) / processors;
  const int64_t steps = (shape.k + Tiles::kDepth - 1) / Tiles::kDepth;
  return static_cast<double>(rounds * steps) * per_step + kBegin + Tiles::kM * Tiles::kN / 16.0;
}

template <class Tiles>
OperandMaps operand_maps(const Tensor& a, const Tensor& b) {
  using hctr::cuda::tensor_map;
  return {tensor_map(a, Tiles::kDepth, Tiles::kM),
          Tiles::kTransposedB ? tensor_map(b, Tiles::kColumns, 64) : tensor_map(b, Tiles::kDepth, Tiles::kN)};
}

/// The blocks of a GEMM and its tiles.
template <class Tiles>
struct ProductBlocks {
  int64_t blocks = 0, tiles = 0;
  int across = 0;
  ProductBlocks(Context& ctx, const ProductShape& shape)
      : tiles(int64_t{(shape.m + Tiles::kM - 1) / Tiles::kM} * ((shape.n + Tiles::kN - 1) / Tiles::kN)),
        across((shape.n + Tiles::kN - 1) / Tiles::kN) {
    blocks = std::min(tiles, multiprocessors_for(ctx));
  }
  hctr::cuda::Grid grid() const { return hctr::cuda::early({blocks, Tiles::kThreads, Tiles::kSharedBytes}); }
  bool one_each() const { return tiles == blocks; }
  /// For tiles that blocks share. Only one such GEMM may run at a time.
  TileQueue queue(Context& ctx) const {
    return {static_cast<int>(tiles), across,
            reinterpret_cast<uint32_t*>(ctx.runtime().cuda_libraries()->tile_counter.data())};
  }
};

/// result = end(a b), or end(a b^T) unless kTransposedB: then b is [n, k]. With tiles of this kind.
template <class Tiles, class End>
void start_fused_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                         const End& end) {
  using hctr::cuda::tensor_map;
  const ProductShape shape{static_cast<int>(result.dim(0)), static_cast<int>(result.dim(1)),
                           static_cast<int>(a.dim(1))};
  const CUtensorMap to = tensor_map(result, Tiles::kColumns, 64);
  const ProductMaps maps{
      operand_maps<Tiles>(a, b), to,
      Tiles::kLast > 0 ? tensor_map(result, std::max(1, Tiles::kLast), 64, hctr::cuda::Swizzle::none) : to};
  const ProductBlocks<Tiles> blocks(ctx, shape);
  if constexpr (Tiles::kN <= 128)  // wider ones are for large GEMMs
    if (blocks.one_each())
      return hctr::cuda::launch(ctx, name, blocks.grid(), single_tile_kernel<Tiles, End>, maps, shape, blocks.across,
                                end);
  hctr::cuda::launch(ctx, name, blocks.grid(), fused_product_kernel<Tiles, End>, maps, shape, blocks.queue(ctx), end);
}

/// The same with the tiles that suit the shape. Only on the compute stream.
template <class T, bool kTransposedB, class End>
void fused_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                   const End& end) {
  HCTR_EXPECT(ctx.stream().handle == ctx.runtime().compute_stream().handle, name,
              " must run on the compute stream, which owns the tile counter");
  const ProductShape shape{static_cast<int>(result.dim(0)), static_cast<int>(result.dim(1)),
                           static_cast<int>(a.dim(1))};
  double least = 0;
  void (*best)(Context&, const char*, const Tensor&, const Tensor&, const Tensor&, const End&) = nullptr;
  const auto consider = [&]<class Tiles>(Tiles) {
    const double cycles = product_cycles<Tiles>(shape, multiprocessors_for(ctx));
    if (!best || cycles < least) least = cycles, best = start_fused_product<Tiles, End>;
  };
  if constexpr (sizeof(T) == 2) {
    consider(Tiling<T, 2, 256, kTransposedB, End::kBias>());
    consider(Tiling<T, 2, 208, kTransposedB, End::kBias>());
  }
  consider(Tiling<T, 2, 128, kTransposedB, End::kBias>());
  consider(Tiling<T, 2, 64, kTransposedB, End::kBias>());
  consider(Tiling<T, 1, 64, kTransposedB, End::kBias>());
  best(ctx, name, a, b, result, end);
}

}  // namespace hctr::ops::hopper
