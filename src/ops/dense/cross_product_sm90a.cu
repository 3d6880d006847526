// A GEMM with a gate in its epilogue, for compute capability 9.0. The main loop is that of ops/gemm/fused_product.cuh.
// The epilogue reads two matrices of the result's shape and writes two matrices of this shape.
//
// One thread per group of 64 rows loads both input matrices of a tile to shared memory by TMA while the tile's GEMM
// runs. The consumer threads overwrite the matrices with both results. The same thread stores the results by TMA while
// the GEMM of the next tile runs.
#include <array>

#include "ops/dense/cross_product.h"
#include "ops/gemm/epilogue.cuh"
#include "ops/gemm/fused_product.cuh"

namespace hctr::ops {
namespace {

using namespace hopper;

/// Tiles of 128 x 192. With wider tiles, shared memory has no space for two matrices and three pipeline stages.
template <class T_, bool kTransposedB_>
struct GatedTiling {
  using T = T_;
  static constexpr int kGroups = 2, kN = 192;
  static constexpr bool kTransposedB = kTransposedB_;
  static constexpr int kM = 64 * kGroups, kThreads = 128 * (kGroups + 1), kConsumers = 128 * kGroups;
  static constexpr int kDepth = kBoxRowBytes / sizeof(T), kColumns = kBoxRowBytes / sizeof(T);
  // kFullBoxes: TMA boxes that cover a group's 64 rows of a result tile. kLast: columns of a narrower last box; here
  // none
  static constexpr int kFullBoxes = kN / kColumns, kLast = 0;
  static constexpr int kBytesA = kM * kBoxRowBytes;
  static constexpr int kBoxesB = kTransposedB ? kFullBoxes : 1;
  static constexpr int kBoxBytesB = kTransposedB ? kBoxBytes : kN * kBoxRowBytes;
  static constexpr int kStageBytes = kBytesA + kBoxesB * kBoxBytesB;
  static constexpr int kMatrixBytes = kFullBoxes * kBoxBytes, kStages = 3;
  static_assert(sizeof(T) == 2 && kN % kColumns == kLast && kStageBytes % kBoxAlignment == 0);
};

/// Shared memory of a block. `operands` and `tiles` are those of TileStorage. `matrices`: TMA loads fill the boxes of a
/// group's 64 rows of both input matrices. The group overwrites them with the results and releases them for the TMA
/// store. `summed` completes a phase when the group has read the results for the column sums.
template <class Tiles>
struct GatedStorage {
  std::byte stages[Tiles::kStages * Tiles::kStageBytes];  ///< GEMM operands of all pipeline stages
  std::byte boxes[Tiles::kGroups][2][Tiles::kMatrixBytes];
  Pipeline<Tiles::kStages> operands;
  Pipeline<2> tiles;
  Pipeline<1> matrices[Tiles::kGroups];
  uint64_t summed[Tiles::kGroups];
  int tile[2];  ///< published tile numbers, double-buffered

  __device__ void init_barriers() {
    operands.init(1, Tiles::kGroups);
    tiles.init(1, Tiles::kConsumers + Tiles::kGroups);
    for (int g = 0; g < Tiles::kGroups; ++g) {
      matrices[g].init(1, 128);
      mbarrier_init(summed + g, 128);
    }
    fence_mbarrier_init();
  }
};

/// TMA maps of the GEMM operands, of the two input matrices, and of the two results.
struct GatedMaps {
  OperandMaps operands;
  CUtensorMap in[2], out[2];
};

/// Loads both matrices of a group's 64 rows of each tile, and stores both results. Called by one thread per group.
template <class Tiles, bool kSums>
__device__ void move_matrices(const GatedMaps& maps, const TileQueue& queue, int group, GatedStorage<Tiles>& shared) {
  Pipeline<1>& matrices = shared.matrices[group];
  const auto each_box = [&](const auto& body) {
#pragma unroll
    for (int which = 0; which < 2; ++which)
#pragma unroll
      for (int i = 0; i < Tiles::kFullBoxes; ++i) body(which, i, shared.boxes[group][which] + i * kBoxBytes);
  };
  for (int turn = 0;; ++turn) {
    const auto place = PipelineState<2>::after(turn);
    shared.tiles.consumer_wait(place);
    const int tile = shared.tile[place.stage];
    shared.tiles.consumer_release(place.stage);
    if (tile < 0) return;
    const int row = tile / queue.columns * Tiles::kM + 64 * group, column = tile % queue.columns * Tiles::kN;
    const auto use = PipelineState<1>::after(turn);
    matrices.producer_expect_tx(use.stage, 2 * Tiles::kMatrixBytes);
    each_box([&](int which, int i, std::byte* box) {
      tma_load(box, maps.in[which], column + i * Tiles::kColumns, row, matrices.producer_barrier(use.stage));
    });
    matrices.producer_wait_released(use);
    each_box([&](int which, int i, const std::byte* box) {
      tma_store(maps.out[which], column + i * Tiles::kColumns, row, box);
    });
    tma_store_commit_group();
    if constexpr (kSums) mbarrier_wait(shared.summed + group, use.parity);
    tma_store_wait_read();
  }
}

/// The biases of a thread's columns of a tile, loaded before the GEMM to hide the load latency.
template <class Tiles, class E>
struct ColumnBiases {
  uint32_t two[E::kBias ? Tiles::kN / 8 : 1];

  /// `column`: the tile's first column. `thread`: index in the group.
  __device__ ColumnBiases(const E& epilogue, int column, int thread) {
    if constexpr (E::kBias)
#pragma unroll
      for (int j = 0; j < Tiles::kN / 8; ++j) two[j] = epilogue.biases(column + 8 * j + 2 * (thread % 4));
  }
  /// Adds the bias to element `which` (0 or 1) of column pair j.
  __device__ float add(int j, float product, int which) const {
    if constexpr (E::kBias)
      return product + unpack<typename Tiles::T>(two[j], which);
    else
      return product;
  }
};

/// Applies the epilogue to `d`, the accumulators of one thread in its group's 64 rows. Overwrites both matrices in
/// shared memory with the results. `thread`: index in the group.
template <class Tiles, class E>
__device__ __forceinline__ void finish_gates(const E& epilogue, int thread, const ColumnBiases<Tiles, E>& biases,
                                             const float (&d)[Tiles::kN / 2],
                                             std::byte (&matrices)[2][Tiles::kMatrixBytes]) {
  constexpr int kAtOnce = 4;  // pairs of columns that a thread loads before it uses any of them
  const int lane = thread % 32, row = 16 * (thread / 32) + lane / 4;
  std::byte* const first = matrices[0] + row * kBoxRowBytes + 4 * (lane % 4);
  std::byte* const second = matrices[1] + row * kBoxRowBytes + 4 * (lane % 4);
#pragma unroll
  for (int begin = 0; begin < Tiles::kN / 8; begin += kAtOnce) {
    uint32_t a[kAtOnce][2], b[kAtOnce][2];
    const auto at = [&](int j, int r) {  // applies the swizzle of 16-byte units within a box row
      return (begin + j) / 8 * kBoxBytes + 8 * r * kBoxRowBytes + (((begin + j) % 8) ^ (row % 8)) * 16;
    };
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        a[j][r] = *reinterpret_cast<const uint32_t*>(first + at(j, r));
        b[j][r] = *reinterpret_cast<const uint32_t*>(second + at(j, r));
      }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float* p = d + 4 * (begin + j) + 2 * r;
        epilogue.finish(biases.add(begin + j, p[0], 0), biases.add(begin + j, p[1], 1), a[j][r], b[j][r]);
        *reinterpret_cast<uint32_t*>(first + at(j, r)) = a[j][r];
        *reinterpret_cast<uint32_t*>(second + at(j, r)) = b[j][r];
      }
    }
  }
}

template <class Tiles, class E>
__global__ void __launch_bounds__(Tiles::kThreads, 1)
    gated_product_kernel(const __grid_constant__ GatedMaps maps, ProductShape shape, TileQueue queue, E epilogue) {
  auto& shared = shared_storage<GatedStorage<Tiles>>();
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();
  hctr::cuda::start_early();

  if (threadIdx.x < 128) {
    setmaxnreg_dec<120>();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x == 0)
      load_tiles<Tiles>(maps.operands, shape, queue, shared);
    else if (threadIdx.x % 32 == 0 && warp <= Tiles::kGroups)
      move_matrices<Tiles, E::kSums>(maps, queue, warp - 1, shared);
    return;
  }

  setmaxnreg_inc<192>();
  const int group = static_cast<int>(threadIdx.x) / 128 - 1, thread = static_cast<int>(threadIdx.x) % 128;
  PipelineState<Tiles::kStages> at;
  for (int turn = 0;; ++turn) {
    const auto place = PipelineState<2>::after(turn);
    const auto use = PipelineState<1>::after(turn);
    shared.tiles.consumer_wait(place);
    const int tile = shared.tile[place.stage];
    if (tile < 0) break;
    const int row = tile / queue.columns * Tiles::kM + 64 * group, column = tile % queue.columns * Tiles::kN;
    const ColumnBiases<Tiles, E> biases(epilogue, column, thread);
    float d[Tiles::kN / 2];
    multiply_tile<Tiles>(d, shared, shape, group, thread, at);
    shared.matrices[group].consumer_wait(use);
    finish_gates<Tiles>(epilogue, thread, biases, d, shared.boxes[group]);
    fence_proxy_async();
    shared.matrices[group].consumer_release(use.stage);
    shared.tiles.consumer_release(place.stage);
    if constexpr (E::kSums) {
      bar_sync(1 + group, 128);
      if (row < shape.m)
        sum_columns<Tiles>(shared.boxes[group][1], thread, shape.n - column,
                           epilogue.sums + int64_t{row / 64} * shape.n + column);
      mbarrier_arrive(shared.summed + group);
    }
  }
}

/// Forward epilogue with the inputs x and skip: for a GEMM result p, computes t = p + bias and x * t + skip.
template <class T>
struct ForwardGate {
  static constexpr bool kBias = true, kSums = false;
  const T* bias;
  int last_pair;  // first column of the last pair

  __device__ uint32_t biases(int column) const {
    return *reinterpret_cast<const uint32_t*>(bias + min(column, last_pair));
  }
  __device__ void finish(float p, float q, uint32_t& x_then_t, uint32_t& skip_then_y) const {
    const uint32_t t = round_two<T>(p, q);
    skip_then_y = round_two<T>(unpack<T>(skip_then_y, 0) + unpack<T>(x_then_t, 0) * unpack<T>(t, 0),
                               unpack<T>(skip_then_y, 1) + unpack<T>(x_then_t, 1) * unpack<T>(t, 1));
    x_then_t = t;
  }
};

/// Backward epilogue. Its inputs are x and `addend`, the gradient that bypasses the layer. For a GEMM result p,
/// computes d_y = p + addend and d_t = d_y * x.
template <class T>
struct BackwardGate {
  static constexpr bool kBias = false, kSums = true;
  float* sums;

  __device__ void finish(float p, float q, uint32_t& addend_then_d_y, uint32_t& x_then_d_t) const {
    const uint32_t d_y = round_two<T>(p + unpack<T>(addend_then_d_y, 0), q + unpack<T>(addend_then_d_y, 1));
    x_then_d_t =
        round_two<T>(unpack<T>(x_then_d_t, 0) * unpack<T>(d_y, 0), unpack<T>(x_then_d_t, 1) * unpack<T>(d_y, 1));
    addend_then_d_y = d_y;
  }
};

/// Epilogue of this kernel. finish(p, q, first, second): p and q are two adjacent elements of the GEMM result; `first`
/// and `second` are the two elements at the same place in each input matrix, and are overwritten with the results. In
/// addition to Epilogue:
///   kBias    whether the epilogue has a bias
///   biases   with kBias: returns the biases of the columns `column` and `column` + 1
template <class E>
concept GateEpilogue = Epilogue<E, void, float, float, uint32_t&, uint32_t&> &&
                       std::same_as<decltype(E::kBias), const bool> && (!E::kBias || requires(const E& e, int column) {
                         { e.biases(column) } -> std::same_as<uint32_t>;
                       });

/// Launches a GEMM with epilogue `epilogue`: a b with b [k, n] if kTransposedB, else a b^T with b [n, k].
template <class T, bool kTransposedB, class E>
void start_gated_product(Context& ctx, const char* name, const Tensor& a, const Tensor& b,
                         const std::array<Tensor, 2>& in, const std::array<Tensor, 2>& out, const E& epilogue) {
  using hctr::cuda::tensor_map;
  using Tiles = GatedTiling<T, kTransposedB>;
  static_assert(GateEpilogue<E>);
  const ProductShape shape{static_cast<int>(out[0].dim(0)), static_cast<int>(out[0].dim(1)),
                           static_cast<int>(a.dim(1))};
  const auto map = [](const Tensor& t) { return tensor_map(t, Tiles::kColumns, 64); };
  const GatedMaps maps{operand_maps<Tiles>(a, b), {map(in[0]), map(in[1])}, {map(out[0]), map(out[1])}};
  const ProductBlocks<Tiles> blocks(ctx, shape);
  hctr::cuda::launch(ctx, name, blocks.template grid<GatedStorage<Tiles>>(), gated_product_kernel<Tiles, E>, maps,
                     shape, blocks.queue(ctx), epilogue);
}

}  // namespace

void hopper::cross_product(Context& ctx, Tensor a, Tensor w, Tensor bias, Tensor x, Tensor skip, Tensor t, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      start_gated_product<T, true>(ctx, "cross_product", a, w, {x, skip}, {t, y},
                                   ForwardGate<T>{bias.data<const T>(), static_cast<int>(y.dim(1)) - 2});
  });
}

void hopper::cross_product_backward(Context& ctx, Tensor d_a, Tensor w, Tensor addend, Tensor x, Tensor d_y, Tensor d_t,
                                    float* sums) {
  dispatch_float(d_y.dtype(), [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      start_gated_product<T, false>(ctx, "cross_product_backward", d_a, w, {addend, x}, {d_y, d_t},
                                    BackwardGate<T>{sums});
  });
}

}  // namespace hctr::ops
