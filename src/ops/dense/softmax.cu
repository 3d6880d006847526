// Softmax kernels. A warp processes one row at a time. y may be x, because each lane reads an element before it writes
// that element.
#include "ops/dense/softmax.h"

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"
#include "ops/dense/softmax_rules.h"

namespace hctr::ops {
namespace {

template <class T>
__global__ void softmax_kernel(LastRows<const T> x, MaskRows<T> masks, LastRows<T> y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t r = cuda::thread_index() / 32; r < x.count; r += cuda::thread_count() / 32) {
    const T *row = x.row(r), *kept = masks.row(r);
    float most = -INFINITY, sum = 0;
    for (int64_t j = lane; j < x.width; j += 32) most = fmaxf(most, score(row, kept, j));
    most = cuda::warp_max(most);
    for (int64_t j = lane; j < x.width; j += 32) sum += std::exp(score(row, kept, j) - most);
    sum = cuda::warp_sum(sum);
    T* to = y.row(r);
    for (int64_t j = lane; j < x.width; j += 32) to[j] = static_cast<T>(std::exp(score(row, kept, j) - most) / sum);
  }
}

template <class T>
__global__ void softmax_backward_kernel(LastRows<const T> y, MaskRows<T> masks, LastRows<const T> dy, LastRows<T> dx) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t r = cuda::thread_index() / 32; r < y.count; r += cuda::thread_count() / 32) {
    const T *share = y.row(r), *g = dy.row(r), *kept = masks.row(r);
    float sum = 0;
    for (int64_t j = lane; j < y.width; j += 32) sum += static_cast<float>(share[j]) * static_cast<float>(g[j]);
    sum = cuda::warp_sum(sum);
    T* to = dx.row(r);
    for (int64_t j = lane; j < y.width; j += 32)
      to[j] = static_cast<T>(keeps(kept, j) ? static_cast<float>(share[j]) * (static_cast<float>(g[j]) - sum) : 0.0f);
  }
}

}  // namespace

void cuda::softmax(Context& ctx, Tensor x, std::optional<Tensor> mask, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    const LastRows<const T> from = last_rows<const T>(x);
    launch(ctx, "softmax", grid_for(from.count * 32), softmax_kernel<T>, from, mask_rows<T>(mask, x.shape()),
           last_rows<T>(y));
  });
}

void cuda::softmax_backward(Context& ctx, Tensor y, std::optional<Tensor> mask, Tensor dy, Tensor dx) {
  dispatch_float(y.dtype(), [&]<class T>() {
    const LastRows<const T> shares = last_rows<const T>(y);
    launch(ctx, "softmax_backward", grid_for(shares.count * 32), softmax_backward_kernel<T>, shares,
           mask_rows<T>(mask, y.shape()), last_rows<const T>(dy), last_rows<T>(dx));
  });
}

}  // namespace hctr::ops
