#include "ops/gemm/tf32_operands.cuh"

#include "core/device/launch.cuh"
#include "ops/common/element_loops.cuh"
#include "ops/gemm/operand_memory.cuh"
#include "ops/gemm/tf32_split.h"

namespace hctr::ops::cuda {
namespace {

constexpr int kPack = 4;
constexpr int64_t kDepthUnit = 8, kRegion = 64;  // number of f32 elements in 32 bytes and in 256 bytes

int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// Kernel arguments for one operand. `big` and `small` each have the rows and columns of `from`, padded with zeros.
struct SplitJob {
  View<const float, 2> from;
  bool packs;  // whether `from` is aligned for loads of four elements
  int64_t rows, columns, stride;
  float *big, *small;

  __host__ __device__ int64_t chunks() const { return rows * (columns / kPack); }
};

__device__ void split_chunk(const SplitJob& job, int64_t i) {
  const Chunk at = chunk_at(i, job.rows, job.columns / kPack, kPack);
  float in[kPack] = {};
  if (at.row < job.from.size(0)) {
    const int64_t left = job.from.size(1) - at.column;
    const float* from = job.from.row(at.row) + at.column;
    if (job.packs) {
      read<kPack>(from, left, in);
    } else {
#pragma unroll
      for (int v = 0; v < kPack; ++v)
        if (v < left) in[v] = from[v];
    }
  }
  float big[kPack], small[kPack];
#pragma unroll
  for (int v = 0; v < kPack; ++v) {
    const Tf32Parts parts = tf32_parts(in[v]);
    big[v] = parts.big;
    small[v] = parts.small;
  }
  const int64_t to = at.row * job.stride + at.column;
  write<kPack>(job.big + to, kPack, big);
  write<kPack>(job.small + to, kPack, small);
}

__global__ void __launch_bounds__(256) split_kernel(SplitJob a, SplitJob b) {
  const int64_t of_a = a.chunks(), all = of_a + b.chunks();
  for (int64_t i = thread_index(); i < all; i += thread_count())
    i < of_a ? split_chunk(a, i) : split_chunk(b, i - of_a);
}

/// Memory layout of the two parts of an operand. `deep`: the summed dimension.
struct Layout {
  int deep;
  // rows, columns: size of a part; stride: between rows; second: offset of the second part
  int64_t rows, columns, stride, second;
  int64_t elements;

  Layout(const Tensor& t, int deep_) : deep(deep_), rows(t.dim(0)), columns(t.dim(1)) {
    (deep == 0 ? rows : columns) = rounded_up(t.dim(deep), kDepthUnit);
    columns = rounded_up(columns, kPack);
    stride = deep == 0 ? columns : 2 * columns;
    second = deep == 0 ? rows * stride : columns;
    elements = rounded_up(2 * rows * columns, kRegion);
  }
  Tensor part(const Tensor& t, float* at, int64_t parts) const {
    const int64_t depth = parts * (deep == 0 ? rows : columns);
    const Shape shape = deep == 0 ? Shape{depth, t.dim(1)} : Shape{t.dim(0), depth};
    return Tensor(at, TensorSpec(DType::f32, shape, stride), t.device());
  }
};

SplitJob job_of(const Tensor& t, const Layout& layout, float* big, float* small) {
  const auto from = t.view<const float, 2>();
  return {from, takes_packs<kPack>(from), layout.rows, layout.columns, layout.stride, big, small};
}

}  // namespace

SplitOperands split_operands(Context& ctx, const Tensor& a, bool of_a, const Tensor& b, bool of_b) {
  const Layout left(a, of_a ? 0 : 1), right(b, of_b ? 1 : 0);
  float* const at_a = operand_memory(ctx.runtime(), left.elements + right.elements);
  float* const at_b = at_a + left.elements;
  const SplitJob job_a = job_of(a, left, at_a, at_a + left.second), job_b = job_of(b, right, at_b + right.second, at_b);
  launch(ctx, "split_operands", grid_for(job_a.chunks() + job_b.chunks()), split_kernel, job_a, job_b);
  return {{left.part(a, at_a, 2), left.part(a, at_a, 1)},
          {right.part(b, at_b, 2), right.part(b, at_b + right.second, 1)}};
}

}  // namespace hctr::ops::cuda
