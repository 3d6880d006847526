// The gradients of the weights of several layers in one kernel, in TF32, for GPUs of compute capability 9.0.
//
// A block computes a tile of 128 x 128 of one of the products x^T d_y, over at most 512 samples: the blocks of a tile,
// at most eight, are a cluster and add up what they have in each other's shared memory, in the order of the samples.
// How many they are depends on the batch alone, and so do the bits of a product.
//
// One warp copies boxes of 32 columns of 32 samples to a ring in shared memory; four warps multiply 64 x 64 each. The
// matrix instruction of warp groups wants the samples, over which is summed, adjacent in shared memory, which they are
// not here; that of a warp takes operands from registers. Of a sample a lane reads four adjacent columns: of x a pair
// for each of two instructions, of d_y one for each of four. So rows and columns of a tile are in another order in the
// instructions, such that lanes read different banks and store adjacent numbers (LanePlace).
#include "ops/weight_gradient.cuh"

#include <algorithm>
#include <bit>
#include <span>

#include "device/profiler.h"
#include "ops/multiply_add.cuh"
#include "ops/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

/// Warps. As many others, of which one copies, leave them their registers.
constexpr int kMultipliers = 4, kThreads = 2 * 32 * kMultipliers;
/// A thread has so many times four adjacent numbers of a tile.
constexpr int kQuads = 32;
/// A tile has as many parts as leave each at most so many samples, but not more than this.
constexpr int kMostSamples = 512, kMostParts = 8;

using Stages = WeightStages<4, 32, 128, 128, 2>;
static_assert(kQuads * 32 * kMultipliers * sizeof(float4) <= Stages::kStages * Stages::kStageBytes);

/// A lane's place in the instruction. It reads columns of the samples `four` and `four` + 4 of each eight.
struct LanePlace {
  int four, eight;

  __device__ explicit LanePlace(int lane) : four(lane % 4), eight(lane / 4) {}

  /// Of each 32 columns of x it reads in the first of two instructions the pair first_pair(), in the second the other
  /// pair, of the four from here on. Likewise for the rows of the result that it has.
  __device__ int four_of_x() const { return 4 * unit(eight); }
  __device__ int first_pair() const { return eight / 2 % 2; }
  /// Of each 32 columns of the result it has four from here on, and the four that are 16 behind them. Of these the
  /// instructions q have the column q ^ `four`: of each 32 columns of d_y they read q ^ `eight` / 2 of the four from
  /// 4 unit(`eight`) on.
  __device__ int four_of_result() const { return 4 * unit(2 * four); }

  /// What the first instructions read of the sample `four`: its place in a box, in bytes.
  __device__ uint32_t first_of_x() const { return static_cast<uint32_t>(unit_in_box() + first_pair() * 8); }
  __device__ uint32_t first_of_d_y() const { return static_cast<uint32_t>(unit_in_box() + eight / 2 * 4); }

 private:
  /// What lanes read at once is in different banks: those of which `eight` / 2 differs read other columns of a unit or,
  /// of x, other units; the others differ in the upper bit of their units, where no `four` has a bit.
  static __device__ int unit(int eight) { return eight / 2 + eight % 2 * 4; }
  __device__ int unit_in_box() const { return four * 128 + (unit(eight) ^ four) * 16; }
};

/// Reads from shared memory what lies so many columns from the first, in the sample of the first or second half of
/// eight, `bytes` behind. Boxes are at multiples of 1,024.
template <class T>
__device__ inline T read_place(uint32_t first, uint32_t columns, uint32_t half, uint32_t bytes) {
  const uint32_t at = (first ^ (columns * 4 + half * 64)) + half * 4 * 128 + bytes;
  return *static_cast<const T*>(__cvta_shared_to_generic(at));
}

/// What a thread has of a tile, as the instruction has it: four times 16 rows, eight times 8 columns.
using Sums = float[4][8][4];

/// Adds the products of a stage to the 64 rows and 64 columns of a warp. x, d_y: what its first instructions read.
__device__ inline void multiply_stage(uint32_t x, uint32_t d_y, Sums& sums) {
#pragma unroll
  for (uint32_t at = 0; at < Stages::kBoxBytes; at += 8 * 128) {
    uint32_t a[4][4], b[8][2];
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
#pragma unroll
      for (uint32_t m = 0; m < 4; ++m) {
        const auto pair = read_place<uint2>(x, m % 2 * 2, half, at + m / 2 * Stages::kBoxBytes);
        a[m][2 * half] = pair.x, a[m][2 * half + 1] = pair.y;
      }
#pragma unroll
      for (uint32_t n = 0; n < 8; ++n)
        b[n][half] = read_place<uint32_t>(d_y, n % 4, half, at + n / 4 * Stages::kBoxBytes);
    }
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int n = 0; n < 8; ++n) tensor_cores::multiply_add<float>(sums[m][n], a[m], b[n][0], b[n][1]);
  }
}

/// Those of a row, q of kQuads, in the order of the four instructions: of those of x it is the instruction q / 8 with
/// its pair's row q / 4 % 2, of d_y it is the box q / 2 % 2 with the lower or upper half of its columns, q % 2.
__device__ inline float4 quad_of(const Sums& sums, int q) {
  const int m = q / 8, i = q / 4 % 2 * 2 + q % 2, n = q / 2 % 2 * 4;
  return make_float4(sums[m][n][i], sums[m][n + 1][i], sums[m][n + 2][i], sums[m][n + 3][i]);
}

/// The same in the order of columns.
__device__ inline float4 in_order(const float4& quad, const LanePlace& lane) {
  const bool one = lane.four & 1, two = lane.four & 2;
  const float4 pairs = one ? make_float4(quad.y, quad.x, quad.w, quad.z) : quad;
  return two ? make_float4(pairs.z, pairs.w, pairs.x, pairs.y) : pairs;
}

__device__ inline void store_quad(const WeightTile& tile, int warp, const LanePlace& lane, int q, const float4& quad) {
  const WeightProduct& product = tile.product;
  const int pair = lane.first_pair() ^ q / 8 % 2;
  const int row = tile.row + warp / 2 * 64 + q / 16 * 32 + lane.four_of_x() + pair * 2 + q / 4 % 2;
  const int column = tile.column + warp % 2 * 64 + q / 2 % 2 * 32 + q % 2 * 16 + lane.four_of_result();
  if (row >= product.in) return;
  float* const to = product.d_w + row * product.stride + column;
  const float4 four = in_order(quad, lane);
  const bool aligned = product.stride % 4 == 0 && reinterpret_cast<uintptr_t>(product.d_w) % 16 == 0;
  if (aligned && column + 3 < product.out) {
    *reinterpret_cast<float4*>(to) = four;
  } else {
    if (column < product.out) to[0] = four.x;
    if (column + 1 < product.out) to[1] = four.y;
    if (column + 2 < product.out) to[2] = four.z;
    if (column + 3 < product.out) to[3] = four.w;
  }
}

/// Each block of the cluster adds up and stores as many quads of every thread. `memory`: the ring, to which no copies
/// are on their way.
__device__ inline void add_parts(const WeightTile& tile, int warp, const LanePlace& place, int parts, const Sums& sums,
                                 std::byte* memory) {
  constexpr int kAll = 32 * kMultipliers;
  float4* const own = reinterpret_cast<float4*>(memory) + threadIdx.x;
  synchronize_group(1, kAll);  // all have read the last stage
#pragma unroll
  for (int q = 0; q < kQuads; ++q) own[q * kAll] = quad_of(sums, q);
  synchronize_cluster();
  constexpr int kAtOnce = kQuads / kMostParts;
  const int share = kQuads / parts, first = static_cast<int>(blockIdx.x) % parts * share;
#pragma unroll 1
  for (int q = first; q < first + share; q += kAtOnce) {
    float4 totals[kAtOnce] = {};
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const float4 one = read_of_block(own + (q + i) * kAll, part);
        totals[i].x += one.x, totals[i].y += one.y, totals[i].z += one.z, totals[i].w += one.w;
      }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) store_quad(tile, warp, place, q + i, totals[i]);
  }
  synchronize_cluster();  // others read this block's memory
}

/// Each tile has `parts` blocks one after the other, which share the steps.
__device__ inline WeightTile tile_of_block(const WeightProducts& list, int parts) {
  const auto block = static_cast<int32_t>(blockIdx.x);
  const int j = product_of(list, block);
  const WeightProduct& product = list.jobs[j];
  const int place = block - list.first_block[j];
  const int steps = Stages::steps(product), each = (steps + parts - 1) / parts;
  const int first = min(place % parts * each, steps);
  return weight_tile<Stages>(product, place / parts, first, min(each, steps - first));
}

__global__ void __launch_bounds__(kThreads, 2)
    weight_gradient_tf32_kernel(const __grid_constant__ WeightProducts list, int parts) {
  extern __shared__ std::byte dynamic_of_weights[];
  const WeightRing<Stages> ring(dynamic_of_weights);
  ring.init_barriers(kMultipliers);
  hctr::cuda::start_early();

  const WeightTile tile = tile_of_block(list, parts);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (warp >= kMultipliers) {
    give_registers<40>();
    RingPlace place;
    if (warp == kMultipliers && lane == 0) ring.load(tile, place);
    return;
  }
  take_registers<216>();
  const LanePlace place(lane);
  const uint32_t boxes = shared_address(ring.boxes);
  uint32_t x = boxes + warp / 2 * 2 * Stages::kBoxBytes + place.first_of_x();
  uint32_t d_y = boxes + (Stages::kBoxesOfX + warp % 2 * 2) * Stages::kBoxBytes + place.first_of_d_y();
  asm("" : "+r"(x), "+r"(d_y));  // else they are computed again in each step
  Sums sums = {};
  RingPlace at;
#pragma unroll 1
  for (int step = 0; step < tile.steps; ++step) {
    wait_for(ring.full + at.stage, at.parity);
    multiply_stage(x + at.stage * Stages::kStageBytes, d_y + at.stage * Stages::kStageBytes, sums);
    __syncwarp();
    if (lane == 0) arrive(ring.empty + at.stage);
    at.next<Stages>();
  }
  if (parts > 1) return add_parts(tile, warp, place, parts, sums, ring.boxes);
#pragma unroll
  for (int q = 0; q < kQuads; ++q) store_quad(tile, warp, place, q, quad_of(sums, q));
}

/// How many blocks share the samples of a tile: a divisor of kQuads.
int parts_of(const WeightProduct& product) {
  const auto parts = static_cast<unsigned>((product.batch + kMostSamples - 1) / kMostSamples);
  return std::min(kMostParts, static_cast<int>(std::bit_ceil(parts)));
}

void start_tf32_products(Context& ctx, WeightProducts& list, int parts) {
  set_first_blocks<Stages>(list, parts);
  count_flops(ctx, flops_of(list));
  const hctr::cuda::Grid grid{.blocks = list.first_block[list.count],
                              .threads = kThreads,
                              .shared_bytes = Stages::kSharedBytes,
                              .early = true,
                              .cluster = parts};
  hctr::cuda::launch(ctx, "weight_gradient", grid, weight_gradient_tf32_kernel, list, parts);
}

/// Those with as many parts in one launch.
void start_tf32_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  start_equal_products(launches, parts_of,
                       [&](WeightProducts& list) { start_tf32_products(ctx, list, parts_of(list.jobs[0])); });
}

}  // namespace

void hopper::add_weight_gradient_tf32(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  add_weight_product(ctx, Stages::product(x, d_y, d_w), start_tf32_weight_gradients);
}

}  // namespace hctr::ops
