// The wgrads of several layers in one kernel, in TF32, for compute capability 9.0.
//
// One block per multiprocessor; the tiles of all GEMMs x^T d_y are divided evenly (ops/gemm/tile_division.cuh). The MMA
// instruction requires the summed dimension, the samples, to be contiguous in shared memory. The samples are contiguous
// in neither operand, so one operand is transposed in shared memory. The other operand comes from registers; any order
// of samples is allowed if both operands have the same order. In a block
//   - four warps copy boxes of 32 samples and 32 columns of both operands to pipeline stages in shared memory
//   - four warps transpose the boxes of the operand with fewer columns per tile, in place
//   - two groups of four warps multiply; each warp loads a box of the other operand into registers.
// Shared memory bandwidth is the bottleneck, not the MMA. Of 11 units of traffic, the MMAs read 4 (2 per group),
// copies write 3, loads to registers are 2, and transposing is 2. Tiles are therefore 256 x 128: with 128 x
// 128, the second operand would be transposed twice as often.
//
// A box of 32 columns holds either the rows of one warp or 32 columns of the MMA instruction. A permutation of the
// columns gives each thread 4 x 4 adjacent elements of the result, and lets 16-byte loads and stores use all banks.
#include <algorithm>
#include <span>

#include "core/device/profiler.h"
#include "ops/gemm/weight_gradient.cuh"
#include "ops/gemm/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

/// Tile size, pipeline stages and thread roles: two groups that multiply, one that transposes, and one that copies.
struct Tf32Tiles : TurnedWeightTiles<256, 128> {
  static constexpr int kSamples = 32, kBoxColumns = 32, kBoxBytes = kSamples * 128;
  static constexpr int kBoxesOfRows = kRows / kBoxColumns, kBoxes = kBoxesOfRows + kColumns / kBoxColumns;
  static constexpr int kStages = 4, kStageBytes = kBoxes * kBoxBytes;
  static constexpr int kWarps = kBoxesOfRows, kMultipliers = 32 * kWarps, kThreads = kMultipliers + 2 * 128;
  static constexpr int kTransposers = kBoxes - kBoxesOfRows, kCopiers = 4;  ///< numbers of warps
  static constexpr int kSumBytes = kRows * kColumns * static_cast<int>(sizeof(float));
  static_assert(kTransposers == 4 && kBoxes % kCopiers == 0);
};

struct Tf32WeightProducts : DividedWeightProducts {
  __device__ TilePieces pieces() const { return {division, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x)}; }
  __device__ int steps_of_block() const {
    const TilePieces all = pieces();
    return division.rounds * division.steps + all.last - all.first;
  }
  __device__ WeightTile tile(int number) const { return Tf32Tiles::tile(list, number); }
};

using Tf32State = PipelineState<Tf32Tiles::kStages>;

/// Shared memory of a block. A stage has the boxes of a tile's rows, then of its columns. `transposed` of a stage
/// completes a phase when the columns of a full stage are transposed.
struct Tf32Storage {
  std::byte stages[Tf32Tiles::kStages * Tf32Tiles::kStageBytes];
  Pipeline<Tf32Tiles::kStages> operands;
  uint64_t transposed[Tf32Tiles::kStages];

  __device__ void init_barriers() {
    if (threadIdx.x == 0) {
      operands.init(Tf32Tiles::kCopiers, Tf32Tiles::kWarps);
      for (uint64_t& barrier : transposed) mbarrier_init(&barrier, Tf32Tiles::kTransposers);
      fence_mbarrier_init();
    }
    __syncthreads();
  }
};

__device__ inline uint4 read_unit(uint32_t shared) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(shared)
               : "memory");
  return v;
}
__device__ inline void write_unit(uint32_t shared, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

/// Producer, one thread of warp `warp`: copies the warp's boxes of both operands for all pieces, step by step. The
/// producer warps start the copies of a step concurrently. The producer computes the arguments of the first copies
/// before the preceding kernel has ended.
__device__ inline void copy_pieces(const Tf32WeightProducts& p, Tf32Storage& shared, int warp) {
  constexpr int kOfRows = Tf32Tiles::kBoxesOfRows / Tf32Tiles::kCopiers;
  constexpr int kOfColumns = Tf32Tiles::kTransposers / Tf32Tiles::kCopiers;
  const int first = warp * kOfRows, first_of_columns = warp * kOfColumns;
  TilePieces pieces = p.pieces();
  Tf32State at;
  TilePiece piece;
  bool started = false;
  while (pieces.next(p.division, piece)) {
    const WeightTile tile = p.tile(piece.tile);
    const CUtensorMap &of_rows = tile.map_of_rows(), &of_columns = tile.map_of_columns();
    const int row = tile.row + Tf32Tiles::kBoxColumns * first;
    const int column = tile.column + Tf32Tiles::kBoxColumns * first_of_columns;
    prefetch_tensormap(of_rows);
    prefetch_tensormap(of_columns);
    if (!started) hctr::cuda::start_early();
    started = true;
#pragma unroll 1
    for (int step = piece.first; step < piece.last; ++step, at.advance()) {
      const int sample = step * Tf32Tiles::kSamples;
      uint64_t* const full = shared.operands.producer_barrier(at.stage);
      std::byte* const boxes = shared.stages + at.stage * Tf32Tiles::kStageBytes;
      std::byte* const rows = boxes + first * Tf32Tiles::kBoxBytes;
      std::byte* const columns = boxes + (Tf32Tiles::kBoxesOfRows + first_of_columns) * Tf32Tiles::kBoxBytes;
      shared.operands.producer_acquire(at);
      shared.operands.producer_expect_tx(at.stage, (kOfRows + kOfColumns) * Tf32Tiles::kBoxBytes);
#pragma unroll
      for (int i = 0; i < kOfRows; ++i)
        tma_load(rows + i * Tf32Tiles::kBoxBytes, of_rows, row + Tf32Tiles::kBoxColumns * i, sample, full);
#pragma unroll
      for (int i = 0; i < kOfColumns; ++i)
        tma_load(columns + i * Tf32Tiles::kBoxBytes, of_columns, column + Tf32Tiles::kBoxColumns * i, sample, full);
    }
  }
}

/// A lane's byte offsets in a box that its warp transposes. 16-byte units are swizzled in both layouts: unit u of row r
/// is at position u XOR (r % 8). A lane transposes two blocks of four columns and four samples. Both blocks have the
/// four columns from 4 (4 x + t) on. Of eight adjacent samples, the first block has the even ones, and the second block
/// has the odd ones. The two blocks become the units v and v + 4 of transposed rows. Column 16 x + 4 t + 2 b + i
/// becomes row 16 x + 8 b + 2 t + i. In every load and store, the lanes of each group of eight use different units.
struct TransposedPlace {
  uint32_t read, write;

  __device__ explicit TransposedPlace(uint32_t lane) {
    const uint32_t t = lane % 4, x = lane / 4 % 2, v = lane / 8 ^ x;
    read = v / 2 * 1024 + v % 2 * 128 + ((4 * x + t) ^ v % 2) * 16;
    write = (16 * x + 2 * t) * 128 + (v ^ 2 * t) * 16;
  }
};

/// Transposes a box of 32 columns in place, with one warp.
__device__ inline void transpose_box(uint32_t box, const TransposedPlace& place) {
  uint4 four[2][4];  // [block][sample]: four columns
  const uint32_t from = box + place.read, to = box + place.write;
#pragma unroll
  for (uint32_t block = 0; block < 2; ++block)
#pragma unroll
    for (uint32_t r = 0; r < 4; ++r) four[block][r] = read_unit((from ^ (2 * r * 16)) + block * 2048 + r * 256);
  __syncwarp();
#pragma unroll
  for (uint32_t block = 0; block < 2; ++block) {
    const uint4(&of)[4] = four[block];
    const uint32_t even = to ^ (block * 64), odd = (even ^ 16) + 128;
    write_unit(even, of[0].x, of[1].x, of[2].x, of[3].x);
    write_unit(odd, of[0].y, of[1].y, of[2].y, of[3].y);
    write_unit(even + 1024, of[0].z, of[1].z, of[2].z, of[3].z);
    write_unit(odd + 1024, of[0].w, of[1].w, of[2].w, of[3].w);
  }
}

/// Transposer warp `warp`: in each of `steps` steps, transposes its box.
__device__ inline void transpose_steps(int steps, Tf32Storage& shared, int warp, int lane) {
  const TransposedPlace place(static_cast<uint32_t>(lane));
  const uint32_t boxes = shared_address(shared.stages) + (Tf32Tiles::kBoxesOfRows + warp) * Tf32Tiles::kBoxBytes;
  Tf32State at;
  for (; steps > 0; --steps, at.advance()) {
    shared.operands.consumer_wait(at);
    transpose_box(boxes + at.stage * Tf32Tiles::kStageBytes, place);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(shared.transposed + at.stage);
  }
}

/// The part of a tile that one multiplying thread computes: the rows first_row() + r, 0 <= r < 4, and in each group q
/// of 16 columns the four columns from first_column(q) on.
struct Tf32Sums {
  static constexpr int kQuads = Tf32Tiles::kColumns / 16;
  float d[2][64];  ///< accumulators of two MMA instructions

  static __device__ int first_row() { return static_cast<int>(threadIdx.x / 4 * 4); }
  static __device__ int first_column(int q) { return 16 * q + static_cast<int>(threadIdx.x % 4 * 4); }
  __device__ float& of(int r, int q, int c) { return d[r / 2][8 * q + c / 2 * 4 + r % 2 * 2 + c % 2]; }
  __device__ void add(int r, int q, const float4& v) {
    of(r, q, 0) += v.x, of(r, q, 1) += v.y, of(r, q, 2) += v.z, of(r, q, 3) += v.w;
  }
  __device__ float4 row(int r, int q) { return make_float4(of(r, q, 0), of(r, q, 1), of(r, q, 2), of(r, q, 3)); }
  __device__ float4 column(int c, int q) { return make_float4(of(0, q, c), of(1, q, c), of(2, q, c), of(3, q, c)); }
};

/// Template argument Team of give_sums() and take_sums(): the threads that multiply.
struct Tf32Team {
  static constexpr int kThreads = Tf32Tiles::kMultipliers, kQuads = 4 * Tf32Sums::kQuads;
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static void synchronize() { bar_sync(1, kThreads); }
};

/// Loads a thread's operands of two MMA instructions for eight samples: four adjacent columns of the samples 2 j and 2
/// j + 1, j = lane % 4. The first two columns are rows of the first instruction. `first`: address of sample 2 j.
__device__ inline void read_rows(uint32_t first, uint32_t (&a)[2][4]) {
  const uint4 even = read_unit(first), odd = read_unit((first ^ 16) + 128);
  a[0][0] = even.x, a[0][1] = even.y, a[0][2] = odd.x, a[0][3] = odd.y;
  a[1][0] = even.z, a[1][1] = even.w, a[1][2] = odd.z, a[1][3] = odd.w;
}

/// Accumulates a piece. Loads the rows of the next eight samples during the MMAs of the previous eight. `rows`: address
/// of this thread's first rows in stage 0.
__device__ inline void multiply_piece(const TilePiece& piece, Tf32Storage& shared, uint32_t rows, Tf32State& at,
                                      Tf32Sums& sums) {
  const bool releases = threadIdx.x % 32 == 0;
  int before = -1;
#pragma unroll 1
  for (int step = piece.first; step < piece.last; ++step, at.advance()) {
    const uint32_t from = rows + at.stage * Tf32Tiles::kStageBytes;
    uint32_t a[2][2][4];
    shared.operands.consumer_wait(at);
    read_rows(from, a[0]);
    uint64_t b = matrix_descriptor(shared.stages + at.stage * Tf32Tiles::kStageBytes +
                                   Tf32Tiles::kBoxesOfRows * Tf32Tiles::kBoxBytes);
    mbarrier_wait(shared.transposed + at.stage, at.parity);
#pragma unroll
    for (int k = 0; k < Tf32Tiles::kSamples / 8; ++k) {
      const int accumulate = step > piece.first || k > 0;
      wgmma_fence();
      wgmma_registers(sums.d[0], a[k % 2][0], b, accumulate);
      wgmma_registers(sums.d[1], a[k % 2][1], b, accumulate);
      wgmma_commit_group();
      b += 8 * sizeof(float) >> 4;
      wgmma_wait_group<1>();
      if (k == 0 && before >= 0 && releases) shared.operands.consumer_release(before);
      if (k + 1 < Tf32Tiles::kSamples / 8) read_rows(from + (k + 1) * 1024, a[(k + 1) % 2]);
    }
    before = at.stage;
  }
  wgmma_wait_group<0>();
  if (releases) shared.operands.consumer_release(before);
}

template <bool kTransposed, bool kFours>
__device__ inline void store_fours(const WeightTile& tile, Tf32Sums& sums) {
  const int64_t stride = tile.product.stride;
  const int first_row = Tf32Sums::first_row(), first_column = Tf32Sums::first_column(0);
  const int rows = tile.rows - first_row, columns = tile.columns - first_column;
  const int64_t row = tile.row + first_row, column = tile.column + first_column;
  float* const first = tile.product.d_w + (kTransposed ? column * stride + row : row * stride + column);
#pragma unroll
  for (int q = 0; q < Tf32Sums::kQuads; ++q)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kTransposed) {
        if (16 * q + i < columns) store_four<kFours>(first + (16 * q + i) * stride, sums.column(i, q), rows);
      } else {
        if (i < rows) store_four<kFours>(first + i * stride + 16 * q, sums.row(i, q), columns - 16 * q);
      }
    }
}

__device__ inline void store_tf32_sums(const WeightTile& tile, Tf32Sums& sums) {
  const bool fours = has_fours(tile.product);
  if (tile.transposed)
    fours ? store_fours<true, true>(tile, sums) : store_fours<true, false>(tile, sums);
  else
    fours ? store_fours<false, true>(tile, sums) : store_fours<false, false>(tile, sums);
}

/// Multiplying threads: compute all pieces of the block.
__device__ inline void multiply_pieces(const Tf32WeightProducts& p, Tf32Storage& shared) {
  TilePieces pieces = p.pieces();
  const uint32_t j = threadIdx.x % 4, eight = threadIdx.x / 4 % 8;
  uint32_t rows =
      shared_address(shared.stages) + threadIdx.x / 32 * Tf32Tiles::kBoxBytes + 2 * j * 128 + (eight ^ 2 * j) * 16;
  asm("" : "+r"(rows));  // prevents the compiler from computing the address again in each step
  Tf32State at;
  TilePiece piece;
  while (pieces.next(p.division, piece)) {
    Tf32Sums sums;
    multiply_piece(piece, shared, rows, at, sums);
    if (piece.last < p.division.steps) {
      give_sums<Tf32Team>(p.exchange, [&](int i) { return sums.row(i % 4, i / 4); });
      continue;
    }
    if (piece.first > 0)
      take_sums<Tf32Team>(p.exchange, p.division, piece.tile,
                          [&](int i, const float4& others) { sums.add(i % 4, i / 4, others); });
    store_tf32_sums(p.tile(piece.tile), sums);
  }
}

__global__ void __launch_bounds__(Tf32Tiles::kThreads, 1)
    weight_gradient_tf32_kernel(const __grid_constant__ Tf32WeightProducts p) {
  auto& shared = shared_storage<Tf32Storage>();
  shared.init_barriers();

  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  constexpr int kFirstTransposer = Tf32Tiles::kWarps, kFirstCopier = kFirstTransposer + Tf32Tiles::kTransposers;
  if (warp < kFirstCopier) hctr::cuda::start_early();  // producer warps call start_early() later
  if (warp >= kFirstCopier) {
    setmaxnreg_dec<40>();
    if (lane == 0) copy_pieces(p, shared, warp - kFirstCopier);
  } else if (warp >= kFirstTransposer) {
    setmaxnreg_dec<72>();
    transpose_steps(p.steps_of_block(), shared, warp - kFirstTransposer, lane);
  } else {
    setmaxnreg_inc<200>();
    multiply_pieces(p, shared);
  }
}

int tf32_steps(const WeightProduct& product) { return (product.batch + Tf32Tiles::kSamples - 1) / Tf32Tiles::kSamples; }

/// Chooses the number of blocks, at most one per multiprocessor. If there are no more tiles than multiprocessors, each
/// block usually computes one whole tile. Tiles are split among more blocks only if each block still has at least
/// kLeastSteps steps, and if each block saves at least kStepsOfHandingOver steps, the cost of exchanging partial sums.
DividedTiles divide_tf32_tiles(int tiles, int steps) {
  constexpr int64_t kLeastSteps = 16, kStepsOfHandingOver = 12;
  const int64_t multiprocessors = hctr::cuda::multiprocessors(), all_steps = int64_t{tiles} * steps;
  const int64_t wanted = std::max<int64_t>(tiles, all_steps / kLeastSteps);
  const auto blocks = static_cast<int>(std::min(multiprocessors, wanted));
  if (tiles <= multiprocessors && steps - all_steps / blocks < kStepsOfHandingOver) return {tiles, 1};
  return {blocks, tiles % blocks == 0 ? tiles / blocks : std::max(0, tiles / blocks - 1)};
}

/// Launches GEMMs with equal numbers of steps together.
void start_tf32_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  constexpr const char* kName = "weight_gradient";
  HCTR_EXPECT(runs_weight_gradients_tf32(ctx), kName, " must run on a stream that has memory for partial sums");
  start_equal_products(launches, tf32_steps, [&](WeightProducts& list) {
    set_first_blocks<Tf32Tiles>(list);
    count_flops(ctx, flops_of(list));
    const int tiles = list.first_block[list.count], steps = tf32_steps(list.jobs[0]);
    const TileBlocks divided(kName, tiles, steps, divide_tf32_tiles(tiles, steps));
    hctr::cuda::launch(ctx, kName,
                       hctr::cuda::early({divided.blocks, Tf32Tiles::kThreads, shared_bytes<Tf32Storage>()}),
                       weight_gradient_tf32_kernel, Tf32WeightProducts{{list, divided.division, sum_exchange(ctx)}});
  });
}

}  // namespace

bool hopper::runs_weight_gradients_tf32(Context& ctx) { return has_exchange_memory(ctx, Tf32Tiles::kSumBytes); }

void hopper::add_weight_gradient_tf32(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  using hctr::cuda::tensor_map;
  const CUtensorMap map_x = tensor_map(x, Tf32Tiles::kBoxColumns, Tf32Tiles::kSamples);
  const CUtensorMap map_d_y = tensor_map(d_y, Tf32Tiles::kBoxColumns, Tf32Tiles::kSamples);
  add_weight_product(ctx, weight_product(x, map_x, d_y, map_d_y, d_w), start_tf32_weight_gradients);
}

}  // namespace hctr::ops
