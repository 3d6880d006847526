// The dropout kernel. Four threads process 32 adjacent elements with four Philox draws: each thread makes one draw, and
// applies the mask to eight adjacent elements.
#include "ops/common/dropout.h"

#include "ops/common/dropout_rule.h"
#include "ops/common/element_loops.cuh"

namespace hctr::ops {
namespace {

// kDropoutLanes: threads that exchange draws; kDropoutEach: elements per thread
constexpr int kDropoutLanes = 4, kDropoutEach = 8;
constexpr int kDropoutUnits = 2;  // groups of eight elements that a thread loads together

/// Transposes the draws of four adjacent lanes: in lane k, draws.v[q] becomes value k of the draw of lane q.
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

/// Eight adjacent elements, loaded and stored as 16-byte packs or one by one. Elements past the end of a row are
/// skipped.
template <class T>
struct Eight {
  static constexpr int kV = 16 / sizeof(T);
  cuda::Pack<T, kV> packs[kDropoutEach / kV];

  __device__ T& at(int c) { return packs[c / kV].at[c % kV]; }
  template <bool kPacks>
  __device__ void read(const T* from, int64_t left) {
    if (kPacks && left >= kDropoutEach) {
#pragma unroll
      for (int p = 0; p < kDropoutEach / kV; ++p) packs[p] = cuda::load_pack<kV>(from + p * kV);
    } else {
#pragma unroll
      for (int c = 0; c < kDropoutEach; ++c)
        if (c < left) at(c) = from[c];
    }
  }
  template <bool kPacks>
  __device__ void write(T* to, int64_t left) {
    if (kPacks && left >= kDropoutEach) {
#pragma unroll
      for (int p = 0; p < kDropoutEach / kV; ++p) *reinterpret_cast<cuda::Pack<T, kV>*>(to + p * kV) = packs[p];
    } else {
#pragma unroll
      for (int c = 0; c < kDropoutEach; ++c)
        if (c < left) to[c] = at(c);
    }
  }
};

template <class T>
__device__ void drop(const DropoutRule& rule, const Random4& draws, Eight<T>& x) {
#pragma unroll
  for (int c = 0; c < kDropoutEach; c += 2) {
    const float low = rule.apply(draws.v[c / 2], static_cast<float>(x.at(c))),
                high = rule.apply(draws.v[c / 2] >> 16, static_cast<float>(x.at(c + 1)));
    if constexpr (sizeof(T) == 2) {
      reinterpret_cast<uint32_t&>(x.at(c)) = round_two<T>(low, high);
    } else {
      x.at(c) = low;
      x.at(c + 1) = high;
    }
  }
}

/// kPacks: rows are aligned to 16 bytes. A thread starts the loads of kDropoutUnits units and then computes the draws
/// of these units, so that the loads run in the meantime.
template <bool kPacks, class T>
__global__ void dropout_kernel(DropoutRule rule, const StepState* state, View<const T, 2> x, View<T, 2> y) {
  const StepState& s = *state;
  const int64_t rows = y.size(0), columns = y.size(1);
  const auto per_row = static_cast<uint32_t>(cuda::chunks_per_row(columns, kDropoutLanes * kDropoutEach)),
             units = static_cast<uint32_t>(rows) * per_row * kDropoutLanes, threads = gridDim.x * blockDim.x;
  const int lane = static_cast<int>(threadIdx.x) % 32, k = lane % kDropoutLanes;
  const unsigned four = 0xfu << (lane - k);
  // Draws are numbered by row, then by chunk, so the draws of a tensor are contiguous.
  const uint64_t first_draw = dropout_draw(s, rows, 0, columns, 0), step = static_cast<uint64_t>(s.step);
  for (uint32_t begin = blockIdx.x * blockDim.x + threadIdx.x; begin < units; begin += kDropoutUnits * threads) {
    Eight<T> elements[kDropoutUnits];
    int64_t left[kDropoutUnits];
    T* to[kDropoutUnits];
#pragma unroll
    for (int u = 0; u < kDropoutUnits; ++u) {
      const uint32_t i = begin + static_cast<uint32_t>(u) * threads, chunk = i / kDropoutLanes, row = chunk / per_row;
      const int64_t column =
          (chunk - row * per_row) * kDropoutLanes * kDropoutEach + static_cast<uint32_t>(k) * kDropoutEach;
      left[u] = i < units ? columns - column : 0;
      to[u] = y.row(row) + column;
      if (left[u] > 0) elements[u].template read<kPacks>(x.row(row) + column, left[u]);
    }
#pragma unroll
    for (int u = 0; u < kDropoutUnits; ++u) {
      Random4 draws = philox<kDropoutRounds>(rule.key, step, first_draw + begin + static_cast<uint32_t>(u) * threads);
      transpose(draws, four, k);
      drop(rule, draws, elements[u]);
      if (left[u] > 0) elements[u].template write<kPacks>(to[u], left[u]);
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
    const int64_t units = x.rows() * chunks_per_row(x.row_elements(), kDropoutLanes * kDropoutEach) * kDropoutLanes;
    // fails for more than 16 G elements
    HCTR_EXPECT(units < int64_t{1} << 31, "dropout of ", x.elements(), " elements");
    launch(ctx, "dropout", grid_for(units / kDropoutUnits + 1, 256, hctr::cuda::blocks_of_device(16)),
           packs ? dropout_kernel<true, T> : dropout_kernel<false, T>, rule, ctx.state(), from, to);
  });
}

}  // namespace hctr::ops
