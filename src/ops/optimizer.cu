// One pass over weights, gradients and states, four elements a thread and turn. Each block works out the step's scalars
// once, before its first element.
#include "ops/optimizer.h"

#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

template <int kStates>
struct States {
  float* at[kStates > 0 ? kStates : 1];
};

template <int V, class Rule, int kStates>
__global__ void update_dense_kernel(Optimizer optimizer, const StepState* step, const float* g, float* w, States<kStates> states, int64_t count) {
  __shared__ float shared[2];
  if (threadIdx.x == 0) {
    const UpdateScalars own = update_scalars(optimizer, *step);
    shared[0] = own.rate;
    shared[1] = own.gradient_scale;
  }
  __syncthreads();
  const UpdateScalars scalars{shared[0], shared[1]};
  for (int64_t i = cuda::thread_index() * V; i < count; i += cuda::thread_count() * V) {
    const int64_t left = count - i;
    float gradient[V] = {}, weight[V] = {}, state[kStates > 0 ? kStates : 1][V] = {};
    cuda::read<V>(g + i, left, gradient);
    cuda::read<V>(w + i, left, weight);
#pragma unroll
    for (int n = 0; n < kStates; ++n) cuda::read<V>(states.at[n] + i, left, state[n]);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      float own[kStates > 0 ? kStates : 1];
#pragma unroll
      for (int n = 0; n < kStates; ++n) own[n] = state[n][j];
      Rule::update(optimizer, scalars, gradient[j] * scalars.gradient_scale, weight[j], own);
#pragma unroll
      for (int n = 0; n < kStates; ++n) state[n][j] = own[n];
    }
    cuda::write<V>(w + i, left, weight);
#pragma unroll
    for (int n = 0; n < kStates; ++n) cuda::write<V>(states.at[n] + i, left, state[n]);
  }
}

bool aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.bytes()) % 16 == 0; }

}  // namespace

void cuda::update_dense(Context& ctx, const Optimizer& optimizer, Tensor g, Tensor w, const std::vector<Tensor>& states) {
  const int64_t count = w.elements();
  dispatch_rule(optimizer.kind, [&]<class Rule, int kStates>() {
    States<kStates> at{};
    bool packs = aligned(g) && aligned(w);
    for (int n = 0; n < static_cast<int>(states.size()); ++n) {
      at.at[n] = states[static_cast<size_t>(n)].data<float>();
      packs = packs && aligned(states[static_cast<size_t>(n)]);
    }
    constexpr int64_t kMostBlocks = 132 * 8;  // one wave: every block pays for its scalars
    if (packs)
      launch(ctx, "update_dense", grid_for((count + 3) / 4, 256, kMostBlocks), update_dense_kernel<4, Rule, kStates>, optimizer, ctx.state(),
             g.data<const float>(), w.data<float>(), at, count);
    else
      launch(ctx, "update_dense", grid_for(count, 256, kMostBlocks), update_dense_kernel<1, Rule, kStates>, optimizer, ctx.state(),
             g.data<const float>(), w.data<float>(), at, count);
  });
}

}  // namespace hctr::ops
