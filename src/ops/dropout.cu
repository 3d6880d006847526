// Four threads have the 32 elements of four draws: each makes one draw, and decides eight adjacent elements.
#include "ops/dropout.h"

#include "ops/dropout_rule.h"
#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

constexpr int kDropoutLanes = 4, kDropoutEach = 8;  // threads that share their draws, and elements of each

/// Four adjacent lanes exchange their draws, so that lane k has value k of each: draws.v[q] becomes that of lane q.
__device__ void transpose(Random4& draws, unsigned four, int k) {
  const auto swap = [&](uint32_t& low, uint32_t& high, int distance) {
    const bool upper = (k & distance) != 0;
    const uint32_t theirs = __shfl_xor_sync(four, upper ? low : high, distance);
    (upper ? low : high) = theirs;
  };
  swap(draws.v[0], draws.v[1], 1);
  swap(draws.v[2], draws.v[3], 1);
  swap(draws.v[0], draws.v[2], 2);
  swap(draws.v[1], draws.v[3], 2);
}

/// kPacks: memory is accessed in packs of 16 bytes; else in single elements.
template <bool kPacks, class T>
__global__ void dropout_kernel(DropoutRule rule, const StepState* state, View<const T, 2> x, View<T, 2> y) {
  constexpr int kV = kPacks ? 16 / sizeof(T) : 1;
  const StepState s = *state;
  const int64_t rows = y.size(0), columns = y.size(1),
                per_row = cuda::chunks_per_row(columns, kDropoutLanes * kDropoutEach);
  const int lane = static_cast<int>(threadIdx.x) % 32, k = lane % kDropoutLanes;
  const unsigned four = 0xfu << (lane - k);
  for (int64_t i = cuda::thread_index(); i < rows * per_row * kDropoutLanes; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i / kDropoutLanes, rows, per_row, kDropoutLanes * kDropoutEach);
    Random4 draws = philox<kDropoutRounds>(rule.key, static_cast<uint64_t>(s.step),
                                           dropout_draw(s, rows, at.row, columns, at.column + 2 * k));
    transpose(draws, four, k);
    const int64_t column = at.column + kDropoutEach * k;
#pragma unroll
    for (int begin = 0; begin < kDropoutEach; begin += kV) {
      const int64_t left = columns - column - begin;
      if (left <= 0) continue;
      float in[kV] = {}, out[kV];
      cuda::read<kV>(x.row(at.row) + column + begin, left, in);
#pragma unroll
      for (int v = 0; v < kV; ++v) {
        const int c = begin + v;
        out[v] = rule.apply(draws.v[c / 2] >> (16 * (c % 2)), in[v]);
      }
      cuda::write<kV>(y.row(at.row) + column + begin, left, out);
    }
  }
}

}  // namespace

void cuda::dropout(Context& ctx, float rate, uint64_t stream, Tensor x, Tensor y) {
  const DropoutRule rule(rate, ctx.seed(), stream);
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> from = x.matrix<const T>();
    const View<T, 2> to = y.matrix<T>();
    const bool packs = takes_packs<V>(from) && takes_packs<V>(to);
    launch(ctx, "dropout",
           grid_for(x.rows() * chunks_per_row(x.row_elements(), kDropoutLanes * kDropoutEach) * kDropoutLanes),
           packs ? dropout_kernel<true, T> : dropout_kernel<false, T>, rule, ctx.state(), from, to);
  });
}

}  // namespace hctr::ops
