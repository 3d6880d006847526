#include "ops/common/add.h"

#include "ops/common/element_loops.h"

namespace hctr::ops {
namespace {

struct PlusScaled {
  float factor;
  template <class A>
  A operator()(A x, A y) const {
    return y + factor * x;
  }
};

}  // namespace

void add(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  HCTR_EXPECT(!x.empty() && x.size() <= kMostAddends, "add of ", x.size(), " tensors");
  expect_on("add", ctx.device(), y);
  for (const Tensor& t : x) {
    expect_shape("add x", t, y.shape());
    expect_alike("add", {t, y});
  }
  HCTR_ON_DEVICE(ctx, add(ctx, x, y));
}

void cpu::add(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  Extent extent = extent_of({y});
  for (const Tensor& t : x)
    if (!t.dense()) extent = extent_of({t});
  dispatch_real(y.dtype(), [&]<class T>() {
    const View<T, 2> to = rows_of<T>(y, extent);
    for_pieces(ctx, extent, [&](int64_t row, int64_t begin, int64_t end) {
      constexpr int64_t kWidth = 256;
      Acc<T> sum[kWidth];  // y may alias an input, so read all inputs before writing y
      for (; begin < end; begin += kWidth) {
        const int64_t width = std::min(kWidth, end - begin);
        for (size_t n = 0; n < x.size(); ++n) {
          const T* from = rows_of<const T>(x[n], extent).row(row) + begin;
          for (int64_t i = 0; i < width; ++i)
            sum[i] = n == 0 ? static_cast<Acc<T>>(from[i]) : sum[i] + static_cast<Acc<T>>(from[i]);
        }
        for (int64_t i = 0; i < width; ++i) to.row(row)[begin + i] = static_cast<T>(sum[i]);
      }
    });
  });
}

void add_scaled(Context& ctx, Tensor x, float factor, Tensor y) {
  expect_on("add_scaled", ctx.device(), y);
  expect_shape("add_scaled x", x, y.shape());
  expect_alike("add_scaled", {x, y});
  HCTR_ON_DEVICE(ctx, add_scaled(ctx, x, factor, y));
}

void cpu::add_scaled(Context& ctx, Tensor x, float factor, Tensor y) {
  const Extent extent = extent_of({x, y});
  dispatch_real(y.dtype(), [&]<class T>() {
    map(ctx, PlusScaled{factor}, rows_of<T>(y, extent), rows_of<const T>(x, extent), rows_of<const T>(y, extent));
  });
}

}  // namespace hctr::ops
