#include "device/launch.cuh"
#include "ops/embedding_pool.h"
#include "ops/embedding_vector.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::Share;

constexpr int kThreads = 256;

/// Vectors of a group whose rows are on their way together, since a row's number must come before the row; and blocks that a multiprocessor runs at once
/// (0: as it comes). Rows of two bytes take fewer requests each, so more groups must ask.
template <class Stored>
struct Pace {
  static constexpr int kAtOnce = sizeof(Stored) == 2 ? 2 : 4, kBlocks = sizeof(Stored) == 2 ? 5 : 0;
};

/// Vectors v0 and the next, Pace::kAtOnce of them but none from `end` on, each to where to(its number) says. kAll: those of empty bags too.
template <bool kAll, class T, class Stored, int Width, class To>
__device__ __forceinline__ void pool_few(const KeyBatch& batch, int64_t v0, int64_t end, const int32_t* rows, const Stored* table, Combiner combiner, int64_t dim, const Group& group,
                                         int lanes, const To& to) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  KeyRange keys[kAtOnce];
  int32_t first[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) keys[k] = v0 + k < end ? batch.keys_of(v0 + k) : KeyRange{0, 0};
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) first[k] = keys[k].begin < keys[k].end ? rows[keys[k].begin] : 0;
  for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
    Part<Width> part[kAtOnce]{};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (first[k] != 0) part[k] = load_part<Width>(table + first[k] * dim + e);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (v0 + k >= end) break;
      if (!kAll && keys[k].begin == keys[k].end) continue;
      Part<Width> sum{};
      add(part[k], sum);
      for (int32_t p = keys[k].begin + 1; p < keys[k].end; ++p)
        if (const int32_t row = rows[p]; row != 0) add(load_part<Width>(table + row * dim + e), sum);
      const float weight = batch.weight(combiner, v0 + k);
#pragma unroll
      for (int i = 0; i < Width; ++i) sum.v[i] *= weight;
      store_part<Width>(to(static_cast<uint32_t>(v0 + k)) + e, sum);
    }
  }
}

/// One group of lanes per Pace::kAtOnce vectors.
template <class T, class Stored, int Width>
__device__ void pool_vectors(Share share, KeyBatch batch, const int32_t* rows, const Stored* table, Combiner combiner, View<T, 3> y, int lanes) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  const Group group(share, lanes);
  const int64_t dim = y.size(2), vectors = batch.vectors();
  const auto samples = static_cast<uint32_t>(batch.samples);
  for (int64_t v0 = group.index * kAtOnce; v0 < vectors; v0 += group.count * kAtOnce)
    pool_few<true, T, Stored, Width>(batch, v0, vectors, rows, table, combiner, dim, group, lanes, [&](uint32_t v) { return y.row(v % samples) + v / samples * dim; });
}

/// Those of some samples, place by place: the block's second number and those as many further on as there are.
template <class T, class Stored, int Width>
__global__ void pool_samples_kernel(KeyBatch batch, SampleRange samples, const int32_t* rows, const Stored* table, Combiner combiner, View<T, 3> y, int lanes) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  const Group group(lanes);
  const int64_t dim = y.size(2);
  for (int64_t place = blockIdx.y; place < batch.places; place += gridDim.y) {
    const auto of_place = static_cast<uint32_t>(place * batch.samples);
    const int64_t end = of_place + samples.end;
    for (int64_t v0 = of_place + samples.begin + group.index * kAtOnce; v0 < end; v0 += group.count * kAtOnce)
      pool_few<false, T, Stored, Width>(batch, v0, end, rows, table, combiner, dim, group, lanes, [&](uint32_t v) { return y.row(v - of_place) + place * dim; });
  }
}

/// Calls body.operator()<Width>() with the most elements that the memory of both sides lets move at once: 16 bytes of rows.
template <class Stored, class Body>
void dispatch_widest(const void* table, int64_t dim, Tensor y, Body&& body) {
  const auto fits = [&](int64_t width) {
    return splits_by(width, table, sizeof(Stored), dim, dim) && splits_by(width, y.bytes(), static_cast<int64_t>(size_of(y.dtype())), y.row_stride(), dim);
  };
  if constexpr (sizeof(Stored) == 2) {
    if (fits(8)) return body.template operator()<8>();
    if (!fits(4) && fits(2)) return body.template operator()<2>();
  }
  dispatch_width(fits(4), body);
}

}  // namespace

void cuda::pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  const int64_t dim = y.dim(2);
  dispatch_float(y.dtype(), [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      dispatch_widest<Stored>(table.data, dim, y, [&]<int Width>() {
        const int lanes = lanes_for(dim, Width);
        constexpr int kAtOnce = Pace<Stored>::kAtOnce;
        hctr::cuda::launch_shared<pool_vectors<T, Stored, Width>, 256, Pace<Stored>::kBlocks>(
            ctx, "pool", hctr::cuda::grid_for((batch.vectors() + kAtOnce - 1) / kAtOnce * lanes).blocks, batch, rows, table.as<const Stored>(), combiner,
            y.view<T, 3>(), lanes);
      });
    });
  });
}

void cuda::pool_samples(Context& ctx, KeyBatch batch, SampleRange samples, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  if (samples.count() == 0 || batch.places == 0) return;
  const int64_t dim = y.dim(2);
  dispatch_float(y.dtype(), [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      dispatch_widest<Stored>(table.data, dim, y, [&]<int Width>() {
        const int lanes = lanes_for(dim, Width);
        const int64_t groups = (samples.count() + Pace<Stored>::kAtOnce - 1) / Pace<Stored>::kAtOnce;
        hctr::cuda::give(ctx, "pool_samples", [=, from = table.as<const Stored>(), view = y.view<T, 3>()](Context& now) {
          const dim3 blocks(static_cast<unsigned>((groups * lanes + kThreads - 1) / kThreads), static_cast<unsigned>(std::min<int64_t>(batch.places, 65535)));
          pool_samples_kernel<T, Stored, Width><<<blocks, kThreads, 0, hctr::cuda::stream_of(now.stream())>>>(batch, samples, rows, from, combiner, view, lanes);
          HCTR_CHECK(cudaGetLastError());
        });
      });
    });
  });
}

}  // namespace hctr::ops
