// A thread decides the 32 elements of four draws, and copies them eight at a time.
#include "ops/dropout.h"

#include "ops/dropout_rule.h"
#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

/// kPacks: memory is accessed in packs of 16 bytes; else in single elements.
template <bool kPacks, class T>
__global__ void dropout_kernel(DropoutRule rule, const StepState* state, View<const T, 2> x, View<T, 2> y) {
  constexpr int kV = kPacks ? 16 / sizeof(T) : 1, kEach = 8;
  const StepState s = *state;
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, 32);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, 32);
    Random4 draws[4];
#pragma unroll
    for (int q = 0; q < 4; ++q)
      draws[q] = philox<kDropoutRounds>(rule.key, static_cast<uint64_t>(s.step),
                                        dropout_draw(s, rows, at.row, columns, at.column + 2 * q));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t column = at.column + kEach * k;
#pragma unroll
      for (int begin = 0; begin < kEach; begin += kV) {
        const int64_t left = columns - column - begin;
        if (left <= 0) continue;
        float in[kV] = {}, out[kV];
        cuda::read<kV>(x.row(at.row) + column + begin, left, in);
#pragma unroll
        for (int v = 0; v < kV; ++v) {
          const int c = begin + v;
          out[v] = rule.apply(draws[c / 2].v[k] >> (16 * (c % 2)), in[v]);
        }
        cuda::write<kV>(y.row(at.row) + column + begin, left, out);
      }
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
    launch(ctx, "dropout", grid_for(x.rows() * chunks_per_row(x.row_elements(), 32)),
           packs ? dropout_kernel<true, T> : dropout_kernel<false, T>, rule, ctx.state(), from, to);
  });
}

}  // namespace hctr::ops
