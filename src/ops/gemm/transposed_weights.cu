#include "ops/gemm/transposed_weights.cuh"

#include <span>

#include "ops/common/element_loops.cuh"
#include "ops/gemm/operand_memory.cuh"

namespace hctr::ops {
namespace {

// A block transposes 64 x 64 elements; a thread loads and stores four adjacent elements at a time.
constexpr int kSide = 64, kTransposeThreads = 256, kAdjacent = 4;
constexpr int kThreadsOfRow = kSide / kAdjacent, kRowsAtATime = kTransposeThreads / kThreadsOfRow;
constexpr int kRowsOfThread = kSide / kRowsAtATime;

/// Transposes one tile of w. `stride`: row stride of w^T. Columns of w^T past the number of inputs become zero.
__device__ void transpose_tile(hctr::cuda::BlockRange tile, const View<const float, 2>& w, bool packs, int64_t stride,
                               float* to) {
  using Four = cuda::Pack<float, kAdjacent>;
  __shared__ float shared[kSide][kSide + 1];
  const int64_t across = (w.size(1) + kSide - 1) / kSide;
  const int64_t first_in = tile.block / across * kSide, first_out = tile.block % across * kSide;
  const int row = static_cast<int>(threadIdx.x) / kThreadsOfRow,
            column = static_cast<int>(threadIdx.x) % kThreadsOfRow * kAdjacent;

  Four elements[kRowsOfThread];
  const int64_t left = w.size(1) - first_out - column;
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const int64_t in = first_in + row + i * kRowsAtATime;
    const float* const from = w.row(in) + first_out + column;
    if (packs && left >= kAdjacent && in < w.size(0))
      elements[i] = cuda::load_pack<kAdjacent>(from);
    else
      elements[i] = cuda::load_part_of_pack<kAdjacent>(from, in < w.size(0) ? left : 0);
  }
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i)
#pragma unroll
    for (int v = 0; v < kAdjacent; ++v) shared[row + i * kRowsAtATime][column + v] = elements[i].at[v];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const int of_tile = row + i * kRowsAtATime;
    const int64_t out = first_out + of_tile, in = first_in + column;
    if (out >= w.size(1) || in >= stride) continue;
    Four four;
#pragma unroll
    for (int v = 0; v < kAdjacent; ++v) four.at[v] = shared[column + v][of_tile];
    *reinterpret_cast<Four*>(to + out * stride + in) = four;
  }
}

void start_transposing(Context& ctx, std::span<const TransposedWeights> all) {
  using Job = decltype(hctr::cuda::job_of(transpose_tile));
  using Jobs = hctr::cuda::JobList<Job>;
  while (!all.empty()) {
    Jobs jobs;
    for (; jobs.count < Jobs::kMost && jobs.count < static_cast<int>(all.size()); ++jobs.count) {
      const auto& [w, copy] = all[static_cast<size_t>(jobs.count)];
      const auto from = w.view<const float, 2>();
      const int64_t stride = copy.row_stride();
      const int64_t tiles = (stride + kSide - 1) / kSide * ((w.dim(1) + kSide - 1) / kSide);
      jobs.jobs[jobs.count] = Job(from, cuda::takes_packs<kAdjacent>(from), stride, copy.data<float>());
      jobs.first_block[jobs.count + 1] = jobs.first_block[jobs.count] + static_cast<int32_t>(tiles);
    }
    hctr::cuda::launch(ctx, "transpose_weights", hctr::cuda::early({jobs.first_block[jobs.count], kTransposeThreads}),
                       hctr::cuda::jobs_kernel<transpose_tile, Jobs>, jobs);
    all = all.subspan(static_cast<size_t>(jobs.count));
  }
}

}  // namespace

void cuda::transpose_weights(Context& ctx, const std::vector<TransposedWeights>& all) { start_transposing(ctx, all); }

bool cuda::takes_transposed_weights(Context& ctx, int64_t rows, const Tensor& w) {
  const Runtime& runtime = ctx.runtime();
  return w.dtype() == DType::f32 && gains_by_transposed_weights(runtime) &&
         ctx.stream().handle == runtime.compute_stream().handle && rows >= 16 * std::max(w.dim(0), w.dim(1));
}

Tensor cuda::transposed_weights(Context& ctx, const Tensor& w) {
  const TensorSpec spec = transposed_weights_spec(w.spec());
  const TransposedWeights one{w,
                              Tensor(operand_memory(ctx.runtime(), spec.shape[0] * spec.row_stride), spec, w.device())};
  start_transposing(ctx, {&one, 1});
  return one.copy;
}

}  // namespace hctr::ops
