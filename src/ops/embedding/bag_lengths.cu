// The bag length kernel: one bag per thread, in a grid-stride loop.
#include "ops/embedding/bag_lengths.h"

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

template <class T>
__global__ void bag_lengths_kernel(const int32_t* offsets, View<T, 2> y) {
  const int64_t samples = y.size(0), bags = samples * y.size(1);
  for (int64_t bag = hctr::cuda::thread_index(); bag < bags; bag += hctr::cuda::thread_count())
    y.row(bag % samples)[bag / samples] = static_cast<T>(static_cast<float>(offsets[bag + 1] - offsets[bag]));
}

}  // namespace

void cuda::bag_lengths(Context& ctx, const int32_t* offsets, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    hctr::cuda::launch(ctx, "bag_lengths", hctr::cuda::grid_for(y.elements()), bag_lengths_kernel<T>, offsets,
                       y.view<T, 2>());
  });
}

}  // namespace hctr::ops
