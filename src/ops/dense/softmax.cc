#include "ops/dense/softmax.h"

#include <algorithm>
#include <cmath>

#include "ops/dense/softmax_rules.h"

namespace hctr::ops {
namespace {

void check_softmax(const char* what, Context& ctx, const Tensor& x, const std::optional<Tensor>& mask,
                   const Tensor& y) {
  expect_on(what, ctx.device(), x);
  HCTR_EXPECT(x.rank() >= 2, what, ": expected at least 2 dimensions, found shape ", to_string(x.shape()));
  expect_shape(what, y, x.shape());
  expect_alike(what, {x, y});
  if (!mask) return;
  expect_alike(what, {x, *mask});
  HCTR_EXPECT(mask_fits(mask->shape(), x.shape()), what, ": a mask of shape ", to_string(mask->shape()), " for ",
              to_string(x.shape()));
}

}  // namespace

Shape with_ones(const Shape& shape) {
  Shape four{shape[0], 1, 1, shape[shape.rank() - 1]};
  if (shape.rank() > 2) four[2] = shape[shape.rank() - 2];
  if (shape.rank() > 3) four[1] = shape[1];
  return four;
}

bool mask_fits(const Shape& mask, const Shape& x) {
  if (mask.rank() < 2 || x.rank() < 2) return false;
  const Shape part = with_ones(mask), whole = with_ones(x);
  for (const int d : {1, 2})
    if (part[d] != 1 && part[d] != whole[d]) return false;
  return part[0] == whole[0] && part[3] == whole[3];
}

void softmax(Context& ctx, Tensor x, std::optional<Tensor> mask, Tensor y) {
  check_softmax("softmax", ctx, x, mask, y);
  HCTR_ON_DEVICE(ctx, softmax(ctx, x, mask, y));
}

void cpu::softmax(Context& ctx, Tensor x, std::optional<Tensor> mask, Tensor y) {
  dispatch_real(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const LastRows<const T> from = last_rows<const T>(x);
    const LastRows<T> to = last_rows<T>(y);
    const MaskRows<T> masks = mask_rows<T>(mask, x.shape());
    ctx.threads().parallel_for(from.count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *row = from.row(r), *kept = masks.row(r);
        A most = score(row, kept, 0), sum = 0;
        for (int64_t j = 1; j < from.width; ++j) most = std::max(most, score(row, kept, j));
        for (int64_t j = 0; j < from.width; ++j) sum += std::exp(score(row, kept, j) - most);
        for (int64_t j = 0; j < from.width; ++j)
          to.row(r)[j] = static_cast<T>(std::exp(score(row, kept, j) - most) / sum);
      }
    });
  });
}

void softmax_backward(Context& ctx, Tensor y, std::optional<Tensor> mask, Tensor dy, Tensor dx) {
  check_softmax("softmax_backward dy", ctx, y, mask, dy);
  check_softmax("softmax_backward dx", ctx, y, mask, dx);
  HCTR_ON_DEVICE(ctx, softmax_backward(ctx, y, mask, dy, dx));
}

void cpu::softmax_backward(Context& ctx, Tensor y, std::optional<Tensor> mask, Tensor dy, Tensor dx) {
  dispatch_real(y.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const LastRows<const T> shares = last_rows<const T>(y), gradient = last_rows<const T>(dy);
    const LastRows<T> to = last_rows<T>(dx);
    const MaskRows<T> masks = mask_rows<T>(mask, y.shape());
    ctx.threads().parallel_for(shares.count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *share = shares.row(r), *g = gradient.row(r), *kept = masks.row(r);
        A sum = 0;
        for (int64_t j = 0; j < shares.width; ++j) sum += static_cast<A>(share[j]) * static_cast<A>(g[j]);
        for (int64_t j = 0; j < shares.width; ++j)
          to.row(r)[j] =
              static_cast<T>(keeps(kept, j) ? static_cast<A>(share[j]) * (static_cast<A>(g[j]) - sum) : A(0));
      }
    });
  });
}

}  // namespace hctr::ops
