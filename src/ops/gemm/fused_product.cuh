// A GEMM with a fused epilogue, in one kernel for GPUs of compute capability 9.0.
//
// A block processes tiles of 64 kGroups x kN sequentially, or a single tile if there are enough blocks for all tiles.
// One warp copies boxes of both operands to pipeline stages in shared memory by TMA. kGroups groups of four warps
// multiply the operands, 64 rows per group, and apply the epilogue. The groups store the results by TMA while the GEMM
// of the next tile runs. Three helper warps concurrently prepare one mask bit per element of the tile (whether the
// element becomes zero) and the biases of the tile's columns.
//
// Padding elements in the last 16 bytes of a row are also stored, with the value finish(0). If takes_fused_product()
// allows padding, finish(0) must be zero.
#pragma once

#include "core/device/cuda_libraries.cuh"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"
#include "ops/gemm/epilogue.cuh"
#include "ops/gemm/product_tile.cuh"

namespace hctr::ops::hopper {

/// Epilogue of fused_product(). finish(product, bias, keep) returns an element of the result. In addition to Epilogue:
///   kBias     whether the epilogue has a bias
///   prepare   fills the mask and the biases of tile (tile_m, tile_n); called by thread t of kHelpers during the GEMM
template <class E, class Tiles>
concept ElementEpilogue =
    Epilogue<E, float, float, float, bool> && std::same_as<decltype(E::kBias), const bool> &&
    requires(const E& epilogue, const ProductShape& shape, int tile_m, int tile_n, int t, uint8_t* mask,
             float* biases) { epilogue.template prepare<Tiles>(shape, tile_m, tile_n, t, mask, biases); };

struct OperandMaps {
  CUtensorMap a, b;
};

/// TMA maps of both operands and of the result. A result tile is stored in boxes of equal width through `result`. If
/// the width is no multiple of a box, the rest is stored through `last`, the map of a narrower box.
struct ProductMaps {
  OperandMaps operands;
  CUtensorMap result, last;
};

/// The tile scheduler of a GEMM; tiles are numbered row by row. Blocks fetch tiles dynamically. If another kernel
/// occupies a multiprocessor and one block starts late, the other blocks process more tiles.
struct TileQueue {
  int tiles, columns;  ///< number of tiles; tiles per row
  uint32_t* next;      ///< number of the next tile; 0 before and after the kernel

  /// Returns the next tile, or -1. To be called from one thread of a block.
  __device__ int take() const {
    // Each block fetches one tile too many. The last of these extra fetches wraps the counter to 0.
    const uint32_t tile = atomicInc(next, static_cast<uint32_t>(tiles) + gridDim.x - 1);
    return tile < static_cast<uint32_t>(tiles) ? static_cast<int>(tile) : -1;
  }
};

/// Starts the TMA copies of one step's operands. The copies report their bytes to the barrier `full`.
template <class Tiles>
__device__ inline void load_step(const OperandMaps& maps, int m, int n, int k, std::byte* to, uint64_t* full) {
  tma_load(to, maps.a, k, m, full);
  to += Tiles::kBytesA;
#pragma unroll
  for (int i = 0; i < Tiles::kBoxesB; ++i) {
    if constexpr (Tiles::kTransposedB)
      tma_load(to + i * Tiles::kBoxBytesB, maps.b, n + i * Tiles::kColumns, k, full);
    else
      tma_load(to, maps.b, k, n, full);
  }
}

/// Producer, one thread: copies the operands of all steps of the tile at (m, n). Calls loaded(step) after each step.
template <class Tiles, class Storage, class Loaded>
__device__ inline void load_tile(const OperandMaps& maps, const ProductShape& shape, int m, int n, Storage& shared,
                                 PipelineState<Tiles::kStages>& at, Loaded loaded) {
  for (int k = 0, step = 0; k < shape.k; k += Tiles::kDepth, ++step, at.advance()) {
    shared.operands.producer_acquire(at);
    shared.operands.producer_expect_tx(at.stage, Tiles::kStageBytes);
    load_step<Tiles>(maps, m, n, k, shared.stages + at.stage * Tiles::kStageBytes,
                     shared.operands.producer_barrier(at.stage));
    loaded(step);
  }
}

/// Producer, one thread: fetches tile numbers, publishes the numbers to the other threads, and copies operands. The
/// producer publishes the next tile during the GEMM of the current tile, as soon as a mask buffer is free. A free
/// buffer means that all threads have started the current tile, and thus have finished the previous one.
template <class Tiles, class Storage>
__device__ inline void load_tiles(const OperandMaps& maps, const ProductShape& shape, const TileQueue& queue,
                                  Storage& shared) {
  const auto publish = [&](int turn, int tile) {
    const auto place = PipelineState<2>::after(turn);
    shared.tiles.producer_acquire(place);
    shared.tile[place.stage] = tile;
    shared.tiles.producer_commit(place.stage);
  };
  PipelineState<Tiles::kStages> at;
  int tile = queue.take();
  publish(0, tile);
  for (int turn = 0; tile >= 0; ++turn) {
    const int m = tile / queue.columns * Tiles::kM, n = tile % queue.columns * Tiles::kN;
    tile = queue.take();  // the latency of the next tile number overlaps this tile
    bool published = false;
    load_tile<Tiles>(maps, shape, m, n, shared, at, [&](int step) {
      if (step == Tiles::kStages) publish(turn + 1, tile), published = true;
    });
    if (!published) publish(turn + 1, tile);
  }
}

/// Multiplies the operands of one pipeline stage, for the 64 rows of a group.
template <class Tiles>
__device__ inline void multiply_step(float (&d)[Tiles::kN / 2], const std::byte* at, int group, bool first_step) {
  using T = typename Tiles::T;
  uint64_t a = matrix_descriptor(at + group * kBoxBytes);
  const std::byte* at_b = at + Tiles::kBytesA;
  uint64_t b = Tiles::kTransposedB ? transposed_matrix_descriptor(at_b, kBoxBytes) : matrix_descriptor(at_b);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    wgmma<T, Tiles::kN, false, Tiles::kTransposedB>(d, a, b, !first_step || k > 0);
    a += 32 >> 4;
    b += (Tiles::kTransposedB ? 16 * kBoxRowBytes : 32) >> 4;
  }
  wgmma_commit_group();
}

/// Computes a group's 64 rows of a tile. `at`: the pipeline position; advanced to the next tile's first stage.
template <class Tiles, class Storage>
__device__ __forceinline__ void multiply_tile(float (&d)[Tiles::kN / 2], Storage& shared, const ProductShape& shape,
                                              int group, int thread, PipelineState<Tiles::kStages>& at) {
  const int steps = (shape.k + Tiles::kDepth - 1) / Tiles::kDepth;
  consume_stages<false>(shared.operands, at, steps, thread == 0, [&](int stage, int step) {
    multiply_step<Tiles>(d, shared.stages + stage * Tiles::kStageBytes, group, step == 0);
  });
}

/// Epilogue of a group's part of a tile; starts the TMA store of the result. `mask`, `biases`: the mask bits and the
/// biases of this tile.
template <class Tiles, class E, class Done>
__device__ __forceinline__ void finish_tile(const ProductMaps& maps, const ProductShape& shape, const E& epilogue,
                                            int tile_m, int tile_n, int group, int thread,
                                            const float (&d)[Tiles::kN / 2], const uint8_t* mask, const float* biases,
                                            std::byte* result, Done finished) {
  finish_products<Tiles>(epilogue, mask, biases, group, thread, d, result);
  finished();
  fence_proxy_async();
  bar_sync(1 + group, 128);
  const int row = tile_m * Tiles::kM + 64 * group, column = tile_n * Tiles::kN;
  if (thread == 0) store_result<Tiles>(maps.result, maps.last, row, column, result);
  if constexpr (E::kSums)
    if (row < shape.m)
      sum_columns<Tiles>(result, thread, shape.n - column, epilogue.sums + int64_t{row / 64} * shape.n + column);
}

template <class Tiles, class E>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    fused_product_kernel(const __grid_constant__ ProductMaps maps, ProductShape shape, TileQueue queue, E epilogue) {
  auto& shared = shared_storage<TileStorage<Tiles>>();
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();
  hctr::cuda::start_early();

  if (threadIdx.x < 128) {
    if constexpr (Tiles::kGroups == 2) setmaxnreg_dec<120>();
    if (threadIdx.x == 0) {
      load_tiles<Tiles>(maps.operands, shape, queue, shared);
    } else if (threadIdx.x >= 32) {
      for (int turn = 0;; ++turn) {
        const auto place = PipelineState<2>::after(turn);
        const int p = place.stage;
        shared.tiles.consumer_wait(place);
        const int tile = shared.tile[p];
        if (tile < 0) return;
        epilogue.template prepare<Tiles>(shape, tile / queue.columns, tile % queue.columns,
                                         static_cast<int>(threadIdx.x) - 32, shared.masks[p], shared.biases[p]);
        mbarrier_arrive(shared.mask_ready + p);
      }
    }
    return;
  }

  if constexpr (Tiles::kGroups == 2) setmaxnreg_inc<192>();
  const int group = static_cast<int>(threadIdx.x) / 128 - 1, thread = static_cast<int>(threadIdx.x) % 128;
  std::byte* const result = shared.results + group * Tiles::kResultBytes;
  PipelineState<Tiles::kStages> at;
  for (int turn = 0;; ++turn) {
    const auto place = PipelineState<2>::after(turn);
    const int p = place.stage;
    shared.tiles.consumer_wait(place);
    const int tile = shared.tile[p];
    if (tile < 0) break;
    float d[Tiles::kN / 2];
    multiply_tile<Tiles>(d, shared, shape, group, thread, at);
    if (thread == 0) tma_store_wait_read();  // the previous tile's stores have read `result`
    mbarrier_wait(shared.mask_ready + p, place.parity);
    bar_sync(1 + group, 128);
    finish_tile<Tiles>(maps, shape, epilogue, tile / queue.columns, tile % queue.columns, group, thread, d,
                       shared.masks[p], shared.biases[p], result, [&] { shared.tiles.consumer_release(p); });
  }
  if (thread == 0) tma_store_wait_read();
}

/// Single-tile variant without the tile scheduler: block i computes tile i. `columns`: tiles per row. The scheduler
/// would take a tenth of the time of a small GEMM.
template <class Tiles, class E>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    single_tile_kernel(const __grid_constant__ ProductMaps maps, ProductShape shape, int columns, E epilogue) {
  auto& shared = shared_storage<TileStorage<Tiles>>();
  if (threadIdx.x == 0) {
    prefetch_tensormap(maps.operands.a);
    prefetch_tensormap(maps.operands.b);
    prefetch_tensormap(maps.result);
    shared.init_barriers();
  }
  __syncthreads();
  hctr::cuda::start_early();

  const int tile_m = static_cast<int>(blockIdx.x) / columns, tile_n = static_cast<int>(blockIdx.x) % columns;
  PipelineState<Tiles::kStages> at;
  if (threadIdx.x < 128) {
    if constexpr (Tiles::kGroups == 2) setmaxnreg_dec<120>();
    if (threadIdx.x == 0) {
      load_tile<Tiles>(maps.operands, shape, tile_m * Tiles::kM, tile_n * Tiles::kN, shared, at, [](int) {});
    } else if (threadIdx.x >= 32) {
      epilogue.template prepare<Tiles>(shape, tile_m, tile_n, static_cast<int>(threadIdx.x) - 32, shared.masks[0],
                                       shared.biases[0]);
      mbarrier_arrive(shared.mask_ready);
    }
    return;
  }

  if constexpr (Tiles::kGroups == 2) setmaxnreg_inc<192>();
  const int group = static_cast<int>(threadIdx.x) / 128 - 1, thread = static_cast<int>(threadIdx.x) % 128;
  float d[Tiles::kN / 2];
  multiply_tile<Tiles>(d, shared, shape, group, thread, at);
  mbarrier_wait(shared.mask_ready, 0);
  finish_tile<Tiles>(maps, shape, epilogue, tile_m, tile_n, group, thread, d, shared.masks[0], shared.biases[0],
                     shared.results + group * Tiles::kResultBytes, [] {});
  if (thread == 0) tma_store_wait_read();
}

/// The number of multiprocessors that a GEMM may use.
inline int64_t multiprocessors_for(const Context& ctx) {
  const int all = hctr::cuda::multiprocessors();
  return ctx.multiprocessors() > 0 ? std::min(ctx.multiprocessors(), all) : all;
}

/// Estimated cycles of a GEMM with these tiles on `processors` multiprocessors, from multiplications and from operand
/// copies out of L2. Used only to choose tiles.
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

/// The grid of a GEMM and its tiles.
template <class Tiles>
struct ProductBlocks {
  int64_t blocks = 0, tiles = 0;
  int across = 0;
  ProductBlocks(Context& ctx, const ProductShape& shape)
      : tiles(int64_t{(shape.m + Tiles::kM - 1) / Tiles::kM} * ((shape.n + Tiles::kN - 1) / Tiles::kN)),
        across((shape.n + Tiles::kN - 1) / Tiles::kN) {
    blocks = std::min(tiles, multiprocessors_for(ctx));
  }
  template <class Storage>
  hctr::cuda::Grid grid() const {
    return hctr::cuda::early({blocks, Tiles::kThreads, shared_bytes<Storage>()});
  }
  bool one_each() const { return tiles == blocks; }
  /// The tile scheduler, needed if blocks process several tiles. Only one GEMM with a scheduler may run at a time,
  /// because there is one counter.
  TileQueue queue(Context& ctx) const {
    return {static_cast<int>(tiles), across,
            reinterpret_cast<uint32_t*>(ctx.runtime().cuda_libraries()->tile_counter.data())};
  }
};

/// Launches result = epilogue(a b) with b [k, n] if kTransposedB, else result = epilogue(a b^T) with b [n, k]. Uses the
/// tile size Tiles.
template <class Tiles, class E>
void start_fused_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                         const E& epilogue) {
  using hctr::cuda::tensor_map;
  const ProductShape shape{static_cast<int>(result.dim(0)), static_cast<int>(result.dim(1)),
                           static_cast<int>(a.dim(1))};
  const CUtensorMap to = tensor_map(result, Tiles::kColumns, 64);
  const ProductMaps maps{
      operand_maps<Tiles>(a, b), to,
      Tiles::kLast > 0 ? tensor_map(result, std::max(1, Tiles::kLast), 64, hctr::cuda::Swizzle::none) : to};
  const ProductBlocks<Tiles> blocks(ctx, shape);
  static_assert(ElementEpilogue<E, Tiles> && shared_bytes<TileStorage<Tiles>>() <= Tiles::kMostBytes);
  const hctr::cuda::Grid grid = blocks.template grid<TileStorage<Tiles>>();
  if constexpr (Tiles::kN <= 128)  // wider tiles are for large GEMMs
    if (blocks.one_each())
      return hctr::cuda::launch(ctx, name, grid, single_tile_kernel<Tiles, E>, maps, shape, blocks.across, epilogue);
  hctr::cuda::launch(ctx, name, grid, fused_product_kernel<Tiles, E>, maps, shape, blocks.queue(ctx), epilogue);
}

/// Like start_fused_product(), with the tile size that fits the shape. Compute stream only.
template <class T, bool kTransposedB, class E>
void fused_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b, const Tensor& result,
                   const E& epilogue) {
  HCTR_EXPECT(ctx.stream().handle == ctx.runtime().compute_stream().handle, name,
              " must run on the compute stream, which owns the tile counter");
  const ProductShape shape{static_cast<int>(result.dim(0)), static_cast<int>(result.dim(1)),
                           static_cast<int>(a.dim(1))};
  double least = 0;
  void (*best)(Context&, const char*, const Tensor&, const Tensor&, const Tensor&, const E&) = nullptr;
  const auto consider = [&]<class Tiles>(Tiles) {
    const double cycles = product_cycles<Tiles>(shape, multiprocessors_for(ctx));
    if (!best || cycles < least) least = cycles, best = start_fused_product<Tiles, E>;
  };
  if constexpr (sizeof(T) == 2) {
    consider(Tiling<T, 2, 256, kTransposedB, E::kBias>());
    consider(Tiling<T, 2, 208, kTransposedB, E::kBias>());
  }
  consider(Tiling<T, 2, 128, kTransposedB, E::kBias>());
  consider(Tiling<T, 2, 64, kTransposedB, E::kBias>());
  consider(Tiling<T, 1, 64, kTransposedB, E::kBias>());
  best(ctx, name, a, b, result, epilogue);
}

}  // namespace hctr::ops::hopper
