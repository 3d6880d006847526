// The dense optimizer kernel: one pass over weights, gradients and states, four elements per thread and iteration. Each
// block computes the step's scalars once, before its first element.
#include "ops/optimizer/optimizer.h"

#include "ops/common/element_loops.cuh"
#include "ops/optimizer/optimizer.cuh"

namespace hctr::ops {
namespace {

struct States {
  float* at[kMostStates];
};

/// A two-byte copy of the weights; null: no copy. The kernel dispatches on the dtype for each store. The kernel is
/// bound by memory, so the dispatch takes no extra time.
struct RoundedCopy {
  std::byte* data;
  DType dtype;

  template <int V>
  __device__ void write(int64_t i, int64_t left, const float (&weight)[V]) const {
    if (!data) return;
    if (dtype == DType::bf16)
      cuda::write<V>(reinterpret_cast<BFloat16*>(data) + i, left, weight);
    else
      cuda::write<V>(reinterpret_cast<Half*>(data) + i, left, weight);
  }
};

template <int V, class Rule>
__global__ void update_dense_kernel(Optimizer optimizer, const StepState* step, const float* g, float* w, States states,
                                    RoundedCopy copy, int64_t count) {
  cuda::start_early();
  constexpr int kStates = Rule::kStates;
  if (step->skip) return;
  const UpdateScalars scalars = block_scalars<Rule>(optimizer, step);
  const GradientScale scale = optimizer.gradient_scale(scalars);
  for (int64_t i = cuda::thread_index() * V; i < count; i += cuda::thread_count() * V) {
    const int64_t left = count - i;
    float gradient[V] = {}, weight[V] = {}, state[kMostStates][V] = {};
    cuda::read<V>(g + i, left, gradient);
    cuda::read<V>(w + i, left, weight);
#pragma unroll
    for (int n = 0; n < kStates; ++n) cuda::read<V>(states.at[n] + i, left, state[n]);
    bool finite = true;
#pragma unroll
    for (int j = 0; j < V; ++j) {
      float own[kMostStates];
#pragma unroll
      for (int n = 0; n < kStates; ++n) own[n] = state[n][j];
      Rule::update(optimizer, scalars, gradient[j] * scale, weight[j], own);
      finite = finite && (j >= left || left_finite<Rule>(weight[j], own));
#pragma unroll
      for (int n = 0; n < kStates; ++n) state[n][j] = own[n];
    }
    report_spoiled(finite, step);
    cuda::write<V>(w + i, left, weight);
    copy.template write<V>(i, left, weight);
#pragma unroll
    for (int n = 0; n < kStates; ++n) cuda::write<V>(states.at[n] + i, left, state[n]);
  }
}

bool aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.bytes()) % 16 == 0; }

}  // namespace

void cuda::update_dense(Context& ctx, const Optimizer& optimizer, Tensor g, Tensor w, const std::vector<Tensor>& states,
                        std::optional<Tensor> copy) {
  const int64_t count = w.elements();
  States at{};
  bool packs = aligned(g) && aligned(w);
  for (size_t n = 0; n < states.size(); ++n) {
    at.at[n] = states[n].data<float>();
    packs = packs && aligned(states[n]);
  }
  const RoundedCopy rounded{copy ? copy->bytes() : nullptr, copy ? copy->dtype() : DType::f16};
  packs = packs && (!copy || aligned(*copy));
  dispatch_rule(optimizer.kind, [&]<class Rule>() {
    // at most one wave of blocks, because each block computes the scalars
    const int64_t most_blocks = hctr::cuda::blocks_of_device(8);
    if (packs)
      launch(ctx, "update_dense", early(grid_for((count + 3) / 4, 256, most_blocks)), update_dense_kernel<4, Rule>,
             optimizer, ctx.state(), g.data<const float>(), w.data<float>(), at, rounded, count);
    else
      launch(ctx, "update_dense", early(grid_for(count, 256, most_blocks)), update_dense_kernel<1, Rule>, optimizer,
             ctx.state(), g.data<const float>(), w.data<float>(), at, rounded, count);
  });
}

}  // namespace hctr::ops
