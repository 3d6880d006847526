// Kernels that sum the gradients of each row's occurrences. First, a group of lanes sums each piece of a long run; then
// a group of lanes or a block sums the piece sums of a run. The order is fixed (embedding_group.h); there are no
// atomics.
#pragma once

#include <algorithm>

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/embedding_update.h"
#include "ops/embedding/embedding_vector.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kUpdateThreads = 256;
constexpr int kPieceThreads = 128;  // block size for piece sums; small, so that blocks fit next to other kernels

/// Gradients whose dtype is dispatched in the kernel. Widths that few models use thus have one kernel instead of three.
struct AnyFloatView {
  View<const std::byte, 3> bytes;  // row_stride counts elements of `dtype`
  DType dtype;
  int64_t row_stride = bytes.row_stride;
  __device__ int64_t size(int i) const { return bytes.size(i); }
};

/// Returns elements [at, at + Width) of the memory of dy.
template <int Width, class T>
__device__ Fragment<Width> load_at(const View<T, 3>& dy, int64_t at) {
  return load_fragment<Width>(dy.data + at);
}
template <int Width>
__device__ Fragment<Width> load_at(const AnyFloatView& dy, int64_t at) {
  if (dy.dtype == DType::f16) return load_fragment<Width>(reinterpret_cast<const Half*>(dy.bytes.data) + at);
  if (dy.dtype == DType::bf16) return load_fragment<Width>(reinterpret_cast<const BFloat16*>(dy.bytes.data) + at);
  return load_fragment<Width>(reinterpret_cast<const float*>(dy.bytes.data) + at);
}

constexpr int kGradientsAtOnce = 4;

/// Numbers of the bags at kAtOnce positions; 0 past the last requested position.
template <int kAtOnce = kGradientsAtOnce>
struct FewBags {
  uint32_t bag[kAtOnce];
};

/// The gradients of a batch, indexed by bag. Dy: a View or AnyFloatView.
template <class Dy, int Width>
struct BagGradients {
  KeyBatch batch;
  Combiner combiner;
  const int32_t* bags;
  Dy dy;

  /// Returns elements [e, e + Width) of the weighted sum of the gradients at positions [begin, end), added in order. A
  /// thread loads kAtOnce gradients before it adds the first. It must load the bag of a gradient before the gradient
  /// itself, and with a small kAtOnce it would wait for each of these loads.
  template <int kAtOnce = kGradientsAtOnce>
  __device__ Fragment<Width> sum_up(int32_t begin, int32_t end, int64_t e) const {
    Fragment<Width> sum{};
    add_up<kAtOnce>(begin, end, e, sum);
    return sum;
  }
  /// Adds the gradients of positions [p, end) to `sum`, like sum_up().
  template <int kAtOnce = kGradientsAtOnce>
  __device__ __forceinline__ void add_up(int32_t p, int32_t end, int64_t e, Fragment<Width>& sum) const {
    for (; p + kAtOnce <= end; p += kAtOnce) add_some<kAtOnce, true>(p, end, e, bags_from<kAtOnce, true>(p, end), sum);
    if (p < end) add_some<kAtOnce, false>(p, end, e, bags_from<kAtOnce>(p, end), sum);
  }

  /// The first element of a position's gradient in dy, and the gradient's weight.
  struct Place {
    int64_t at = 0;
    float weight = 1;
  };
  __device__ Place place_of(int32_t p) const {
    const auto bag = static_cast<uint32_t>(bags[p]), samples = static_cast<uint32_t>(batch.samples),
               slot = bag / samples;
    return {element_of(bag - slot * samples, slot, 0), batch.weight(combiner, bag)};
  }
  __device__ __forceinline__ Fragment<Width> load(const Place& place, int64_t e) const {
    return load_at<Width>(dy, place.at + e);
  }
  __device__ __forceinline__ static Fragment<Width> weighted(const Place& place, const Fragment<Width>& gradient) {
    Fragment<Width> sum{};
#pragma unroll
    for (int i = 0; i < Width; ++i) sum.v[i] += place.weight * gradient.v[i];
    return sum;
  }
  /// Returns the bags of positions p to p + kAtOnce - 1. Unless kAll, positions from `end` on give 0.
  template <int kAtOnce = kGradientsAtOnce, bool kAll = false>
  __device__ __forceinline__ FewBags<kAtOnce> bags_from(int32_t p, int32_t end) const {
    FewBags<kAtOnce> few;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) few.bag[k] = kAll || p + k < end ? static_cast<uint32_t>(bags[p + k]) : 0;
    return few;
  }

 private:
  /// The index of element e of a gradient in the memory of dy.
  __device__ __forceinline__ int64_t element_of(int64_t sample, uint32_t slot, int64_t e) const {
    return sample * dy.row_stride + slot * dy.size(2) + e;
  }
  /// Adds the gradients of positions p to p + kAtOnce - 1, whose bags are `few`. Unless kAll, skips positions from
  /// `end` on.
  template <int kAtOnce, bool kAll>
  __device__ __forceinline__ void add_some(int32_t p, int32_t end, int64_t e, const FewBags<kAtOnce>& few,
                                           Fragment<Width>& sum) const {
    const auto& bag = few.bag;
    const auto samples = static_cast<uint32_t>(batch.samples);
    Fragment<Width> part[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (kAll || p + k < end) {
        const uint32_t slot = bag[k] / samples;
        part[k] = load_at<Width>(dy, element_of(bag[k] - slot * samples, slot, e));
      }
    float weight[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) weight[k] = 1;
    if (combiner == Combiner::mean || combiner == Combiner::sqrtn)
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (kAll || p + k < end) weight[k] = batch.weight(combiner, bag[k]);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (kAll || p + k < end)
#pragma unroll
        for (int i = 0; i < Width; ++i) sum.v[i] += weight[k] * part[k].v[i];
  }
};

/// Sums each piece with a group of lanes. kAtOnce: gradients that a thread loads before it adds the first. Launches
/// with few threads use a large kAtOnce. Launches with many threads use a small one to save registers.
template <int kAtOnce, class Dy, int Width>
__device__ void sum_pieces(BlockRange range, BagGradients<Dy, Width> gradients, RowGroups groups, float* piece_sums,
                           int lanes) {
  const Group group(range, lanes);
  const int64_t dim = gradients.dy.size(2);
  const int64_t pieces = groups.counts->pieces;
  for (int64_t i = group.index; i < pieces; i += group.count) {
    const Piece piece = groups.pieces[i];
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width)
      store_fragment<Width>(piece_sums + i * dim + e, gradients.template sum_up<kAtOnce>(piece.begin, piece.end, e));
  }
}

/// Returns elements [e, e + Width) of the sum of `count` vectors, added in order. count >= 1. Loads kAtOnce vectors at
/// a time.
template <int Width>
__device__ Fragment<Width> sum_vectors(const float* vectors, int count, int64_t dim, int64_t e) {
  constexpr int kAtOnce = 6;
  Fragment<Width> sum = load_fragment<Width>(vectors + e);
  for (int from = 1; from < count; from += kAtOnce) {
    Fragment<Width> part[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (from + k < count) part[k] = load_fragment<Width>(vectors + (from + k) * dim + e);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (from + k < count) add(part[k], sum);
  }
  return sum;
}

/// Sums `count` vectors in place with the whole block: repeatedly reduces each group of kPiece vectors to one. The
/// result is in the first vector and visible to every thread.
template <int Width>
__device__ void sum_in_place(float* vectors, int32_t count, int64_t dim, int lanes) {
  const int groups = kUpdateThreads / lanes, group = static_cast<int>(threadIdx.x) / lanes,
            lane = static_cast<int>(threadIdx.x) % lanes;
  for (; count > 1; count = static_cast<int32_t>((count + kPiece - 1) / kPiece)) {
    for (int64_t to = group; to - group < (count + kPiece - 1) / kPiece;
         to += groups) {  // all threads run the same number of iterations, because of the barrier
      const int64_t first = to * kPiece, last = min(first + kPiece, int64_t{count});
      for (int64_t e0 = 0; e0 < dim; e0 += lanes * Width) {
        const int64_t e = e0 + lane * Width;
        const bool mine = first < count && e < dim;
        Fragment<Width> sum{};
        if (mine) sum = sum_vectors<Width>(vectors + first * dim, static_cast<int>(last - first), dim, e);
        // Other threads may read vector `to` in this iteration. No thread reads `to` in later iterations, because then
        // to < first.
        __syncthreads();
        if (mine) store_fragment<Width>(vectors + to * dim + e, sum);
      }
    }
    __syncthreads();
  }
}

/// Sums the pieces of each long run: a group of lanes for at most kPiece pieces, else a block.
template <int Width>
__device__ void sum_runs(BlockRange range, RowGroups groups, float* piece_sums, int64_t dim, int lanes) {
  const Group group(range, lanes);
  const int64_t runs = groups.counts->long_runs;
  for (int64_t i = group.index; i < runs; i += group.count) {
    const LongRun run = groups.long_runs[i];
    if (run.pieces > kPiece) continue;
    float* const vectors = piece_sums + run.first_piece * dim;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width)
      store_fragment<Width>(vectors + e, sum_vectors<Width>(vectors, run.pieces, dim, e));
  }
  for (int64_t i = range.block; i < runs; i += range.blocks) {
    const LongRun run = groups.long_runs[i];
    if (run.pieces > kPiece) sum_in_place<Width>(piece_sums + run.first_piece * dim, run.pieces, dim, lanes);
  }
}

}  // namespace
}  // namespace hctr::ops
