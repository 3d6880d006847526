// The sequence mask kernel: one element per thread and iteration.
#include "ops/dense/sequence_mask.h"

#include "ops/common/element_loops.cuh"
#include "ops/dense/sequence_mask_rules.h"

namespace hctr::ops {
namespace {

template <class T>
__global__ void sequence_mask_kernel(SequenceMask<T> f, View<T, 2> mask) {
  for (int64_t i = cuda::thread_index(); i < mask.size(0) * mask.size(1); i += cuda::thread_count()) {
    const int64_t row = i / mask.size(1), at = i % mask.size(1);
    mask.row(row)[at] = f(row, at);
  }
}

}  // namespace

void cuda::sequence_mask(Context& ctx, Tensor from, Tensor to, Tensor mask) {
  dispatch_float(mask.dtype(), [&]<class T>() {
    launch(ctx, "sequence_mask", grid_for(mask.elements()), sequence_mask_kernel<T>,
           SequenceMask<T>{from.matrix<const T>(), to.matrix<const T>(), mask.dim(3)}, mask.matrix<T>());
  });
}

}  // namespace hctr::ops
