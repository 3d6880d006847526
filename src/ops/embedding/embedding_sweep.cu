// Applies the optimizer rule to rows without a gradient, whose optimizer states still change the weights. f32 rows are
// processed in tiles of adjacent rows; a tile is one array of 16-byte packs, for any row length. A warp processes one
// tile at a time. The warp reads and clears the `touched` flags of the tile's rows, then reads each array in few long
// segments. A few warps with several loads each are faster than many warps with one load each, because DRAM then serves
// fewer segments at a time.
#include "ops/common/small_divisor.h"
#include "ops/embedding/embedding_update.cuh"

namespace hctr::ops::cuda {
namespace {

constexpr int kSweepPack = 4;
constexpr int kSweepBlocks = 2;  // blocks per multiprocessor
constexpr int kSweepAtOnce = 4;  // packs that a thread loads before it uses the first
// approximate elements per tile: one group of loads of a warp
constexpr int kSweepTile = kSweepAtOnce * 32 * kSweepPack;
constexpr int64_t kWidestSwept = 8192;  // maximum row length, so that SmallDivisor can divide indices within a tile

/// The tile size: a multiple of four adjacent rows, so that a tile starts and ends at a pack boundary. The flags of a
/// tile fit in 32 words.
struct SweepTiling {
  int rows;
  int dim;
  SmallDivisor by_dim;
  explicit SweepTiling(int64_t dim_)
      : rows(static_cast<int>(std::max<int64_t>(1, kSweepTile / dim_ / 4) * 4)),
        dim(static_cast<int>(dim_)),
        by_dim(static_cast<int>(dim_)) {}
};

/// Bit mask of a tile's rows that have no gradient: row r is bit r % 32 of the word in lane r / 32.
struct RowBits {
  uint32_t word;
  /// Whether the bit of `row` is set, so the row has no gradient. Call from all lanes of the warp.
  __device__ bool has(int row) const { return __shfl_sync(0xffffffffu, word, row / 32) >> (row % 32) & 1; }

  /// Returns 4 bits: bit i is set if element at + i of the tile belongs to a row without a gradient. Call from all
  /// lanes of the warp.
  __device__ uint32_t of_pack(int at, const SweepTiling& tiling) const {
    const int row = tiling.by_dim.divide(at);
    if (tiling.dim % kSweepPack == 0) return has(row) ? 15 : 0;
    uint32_t bits = 0;
    if (tiling.dim > kSweepPack) {  // a pack overlaps at most two rows
      const int left = (row + 1) * tiling.dim - at;
      const uint32_t of_first = left < kSweepPack ? (1u << left) - 1 : 15;
      const bool first = has(row), second = has(tiling.by_dim.divide(at + kSweepPack - 1));
      return (first ? of_first : 0) | (second ? 15 & ~of_first : 0);
    }
#pragma unroll
    for (int i = 0; i < kSweepPack; ++i) bits |= has(tiling.by_dim.divide(at + i)) ? 1u << i : 0;
    return bits;
  }
};

/// Returns which of the `rows` rows from `first` on have no gradient. Clears the flags of the other rows.
__device__ RowBits rows_to_sweep(uint8_t* touched, int64_t first, int rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  RowBits bits{0};
  for (int begin = 0; begin < rows; begin += 32) {
    const int row = begin + lane;
    const bool there = row < rows && first + row > 0, has_gradient = there && touched[first + row] != 0;
    const uint32_t word = __ballot_sync(0xffffffffu, there && !has_gradient);
    if (lane == begin / 32) bits.word = word;
    if (has_gradient) touched[first + row] = 0;
  }
  return bits;
}

/// A pack of elements of the vectors, and the pack at the same position of each state.
template <class Rule>
struct SweptPack {
  Fragment<kSweepPack> of[1 + Rule::kStates];

  __device__ void load(const RowData& data, int64_t at) {
    of[0] = load_fragment<kSweepPack>(data.vectors.as<const float>() + at);
#pragma unroll
    for (int n = 0; n < Rule::kStates; ++n)
      of[1 + n] = load_fragment<kSweepPack>(data.states[n].as<const float>() + at);
  }
  /// Applies the rule to the elements in `bits`. Returns whether the results are finite.
  __device__ bool update(const Optimizer& optimizer, const UpdateScalars& scalars, uint32_t bits) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < kSweepPack; ++i) {
      float w = of[0].v[i], state[kMostStates]{};
#pragma unroll
      for (int n = 0; n < Rule::kStates; ++n) state[n] = of[1 + n].v[i];
      Rule::update(optimizer, scalars, 0.0f, w, state);
      if (!(bits >> i & 1)) continue;
      finite = finite && left_finite<Rule>(w, state);
      of[0].v[i] = w;
#pragma unroll
      for (int n = 0; n < Rule::kStates; ++n) of[1 + n].v[i] = state[n];
    }
    return finite;
  }
  /// Stores all elements if `whole`, else the elements in `bits`.
  __device__ void store(const RowData& data, int64_t at, bool whole, uint32_t bits) const {
    store(data.vectors.as<float>() + at, of[0], whole, bits);
#pragma unroll
    for (int n = 0; n < Rule::kStates; ++n) store(data.states[n].as<float>() + at, of[1 + n], whole, bits);
  }

 private:
  __device__ static void store(float* to, const Fragment<kSweepPack>& part, bool whole, uint32_t bits) {
    if (whole) return store_fragment<kSweepPack>(to, part);
#pragma unroll
    for (int i = 0; i < kSweepPack; ++i)
      if (bits >> i & 1) to[i] = part.v[i];
  }
};

template <class Rule>
__global__ void __launch_bounds__(kUpdateThreads, kSweepBlocks)
    sweep_tiles_kernel(Optimizer optimizer, const StepState* state, const uint32_t* last_row, RowData data,
                       SweepTiling tiling) {
  if (state->skip) return;
  const UpdateScalars scalars = block_scalars<Rule>(optimizer, state);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows_of_table = int64_t{*last_row} + 1, warps = hctr::cuda::thread_count() / 32;
  bool finite = true;
  for (int64_t first_row = hctr::cuda::thread_index() / 32 * tiling.rows; first_row < rows_of_table;
       first_row += warps * tiling.rows) {
    const int rows = static_cast<int>(min(int64_t{tiling.rows}, rows_of_table - first_row));
    const int elements = rows * tiling.dim;
    const int64_t first = first_row * tiling.dim;
    const RowBits without_gradient = rows_to_sweep(data.touched, first_row, rows);
    for (int begin = 0; begin < elements; begin += kSweepAtOnce * 32 * kSweepPack) {
      SweptPack<Rule> packs[kSweepAtOnce];
      uint32_t bits[kSweepAtOnce];
      const auto at_of = [&](int p) { return begin + (32 * p + lane) * kSweepPack; };
#pragma unroll
      for (int p = 0; p < kSweepAtOnce; ++p) packs[p].load(data, first + (at_of(p) < elements ? at_of(p) : 0));
#pragma unroll
      for (int p = 0; p < kSweepAtOnce; ++p) {
        const bool there = at_of(p) < elements;
        bits[p] = without_gradient.of_pack(there ? at_of(p) : 0, tiling);
        if (!there) bits[p] = 0;
      }
#pragma unroll
      for (int p = 0; p < kSweepAtOnce; ++p) {
        if (bits[p] == 0) continue;
        finite = packs[p].update(optimizer, scalars, bits[p]) && finite;
        // The last pack may overlap the next row, which another kernel may be initializing for the next batch, so store
        // only elements of this tile.
        packs[p].store(data, first + at_of(p), at_of(p) + kSweepPack <= elements, bits[p]);
      }
    }
  }
  report_spoiled(finite, state);
}

}  // namespace

void sweep_rows(Context& ctx, const Optimizer& optimizer, const uint32_t* rows, RowData data) {
  if (!data.all_f32() || data.state_dim != data.dim || data.dim > kWidestSwept)
    return sweep_rounded_rows(ctx, optimizer, rows, data);
  dispatch_rule(optimizer.kind, [&]<class Rule>() {
    launch(ctx, "sweep_rows", Grid{blocks_of_device(kSweepBlocks), kUpdateThreads, 0}, sweep_tiles_kernel<Rule>,
           optimizer, ctx.state(), rows, data, SweepTiling(data.dim));
  });
}

}  // namespace hctr::ops::cuda
