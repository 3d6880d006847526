// The regularizer kernels. A sum takes two launches: kPenaltyParts blocks sum one part each, then one block adds the
// parts.
#include "ops/optimizer/penalty.h"

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"
#include "ops/optimizer/penalty_rules.h"

namespace hctr::ops {
namespace {

constexpr int kPenaltyThreads = 1024;

__global__ void penalty_parts_kernel(Penalty kind, const float* w, int64_t count, float* parts) {
  const int64_t part = (count + kPenaltyParts - 1) / kPenaltyParts;
  const int64_t begin = blockIdx.x * part, end = min(begin + part, count);
  double sum = 0;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kPenaltyThreads)
    sum += static_cast<double>(penalty_of(kind, w[i]));
  sum = cuda::block_sum<kPenaltyThreads>(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = static_cast<float>(sum);
}

__global__ void penalty_total_kernel(float factor, const float* parts, float* total) {
  const double sum = cuda::block_sum<kPenaltyParts>(static_cast<double>(parts[threadIdx.x]));
  if (threadIdx.x == 0) *total += factor * static_cast<float>(sum);
}

}  // namespace

void cuda::add_penalty(Context& ctx, Penalty kind, float factor, Tensor w, Tensor scratch, Tensor total) {
  float* parts = scratch.data<float>();
  launch(ctx, "penalty_parts", Grid{kPenaltyParts, kPenaltyThreads, 0}, penalty_parts_kernel, kind,
         w.data<const float>(), w.elements(), parts);
  launch(ctx, "penalty_total", Grid{1, kPenaltyParts, 0}, penalty_total_kernel, factor, parts, total.data<float>());
}

void cuda::add_penalty_gradient(Context& ctx, Penalty kind, float factor, Tensor w, Tensor dw) {
  const Extent extent = extent_of({w, dw});
  map<AddPenaltyGradient, float, float, 2>(ctx, "add_penalty_gradient", {kind, factor, ctx.state()},
                                           {{rows_of<const float>(w, extent), rows_of<const float>(dw, extent)}},
                                           rows_of<float>(dw, extent));
}

}  // namespace hctr::ops
