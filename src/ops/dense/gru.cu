// GRU kernels: a thread computes one unit of one row per iteration. Adjacent threads read adjacent columns of every
// gate.
#include "ops/dense/gru.h"

#include "ops/common/element_loops.cuh"
#include "ops/dense/gru_rules.h"

namespace hctr::ops {
namespace {

template <class F>
__global__ void each_unit_kernel(F f, int64_t batch, int64_t units) {
  for (int64_t i = cuda::thread_index(); i < batch * units; i += cuda::thread_count()) f(i / units, i % units);
}

}  // namespace

void cuda::gru_step(Context& ctx, Tensor of_input, Tensor of_state, Tensor bias, Tensor before, Tensor kept, Tensor h) {
  dispatch_float(h.dtype(), [&]<class T>() {
    const GruStep<T> f{of_input.matrix<const float>(), of_state.matrix<const float>(), bias.data<const T>(),
                       before.matrix<const T>(),       kept.matrix<float>(),           h.matrix<T>()};
    launch(ctx, "gru_step", grid_for(h.elements()), each_unit_kernel<GruStep<T>>, f, h.dim(0), h.dim(1));
  });
}

void cuda::gru_step_backward(Context& ctx, Tensor kept, Tensor before, Tensor dh, Tensor through, Tensor direct,
                             Tensor d_of_input, Tensor d_of_state) {
  dispatch_float(dh.dtype(), [&]<class T>() {
    const GruStepBackward<T> f{kept.matrix<const float>(),    before.matrix<const T>(), dh.matrix<const T>(),
                               through.matrix<const float>(), direct.matrix<float>(),   d_of_input.matrix<T>(),
                               d_of_state.matrix<T>()};
    launch(ctx, "gru_step_backward", grid_for(dh.elements()), each_unit_kernel<GruStepBackward<T>>, f, dh.dim(0),
           dh.dim(1));
  });
}

}  // namespace hctr::ops
