#include "ops/common/strided_items.h"

#include <algorithm>

namespace hctr::ops {
namespace {

void expect_pair(const char* what, Context& ctx, const StridedItems& x, const StridedItems& y, int64_t items) {
  HCTR_EXPECT(x.device == ctx.device() && y.device == ctx.device() && x.dtype == y.dtype, what, " of ",
              name_of(x.dtype), " on ", to_string(x.device), " to ", name_of(y.dtype), " on ", to_string(y.device));
  HCTR_EXPECT(x.outer == y.outer && x.width == y.width && items == y.items, what, " of items [", x.outer, ",", items,
              ",", x.width, "] to [", y.outer, ",", y.items, ",", y.width, "]");
}

void expect_indices(const char* what, const std::vector<int64_t>& indices, int64_t items) {
  for (const int64_t index : indices)
    HCTR_EXPECT(index >= 0 && index < items, what, ": index ", index, " of ", items, " items");
}

template <class T>
T* item(const StridedItems& b, int64_t o, int64_t i) {
  return reinterpret_cast<T*>(b.data) + o * b.outer_stride + i * b.item_stride;
}

/// Calls body(outer, item) in parallel for all pairs of indices.
template <class Body>
void for_items(Context& ctx, int64_t outer, int64_t items, int64_t width, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, width));
  ctx.threads().parallel_for(outer * items, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) body(n / items, n % items);
  });
}

}  // namespace

StridedItems StridedItems::slots_of(Tensor t, int64_t items) {
  HCTR_EXPECT(items > 0 && t.row_elements() % items == 0, "rows of ", t.row_elements(), " elements as ", items,
              " items");
  const int64_t width = t.row_elements() / items;
  return {t.bytes(), t.dtype(), t.device(), t.rows(), items, width, t.row_stride(), width};
}

StridedItems StridedItems::runs_of_rows(Tensor t, int64_t items) {
  HCTR_EXPECT(items > 0 && t.rows() % items == 0, t.rows(), " rows cannot be divided into runs of ", items);
  return {t.bytes(),     t.dtype(), t.device(), t.rows() / items, items, t.row_elements(), items * t.row_stride(),
          t.row_stride()};
}

StridedItems StridedItems::columns(int64_t begin, int64_t end) const {
  HCTR_EXPECT(0 <= begin && begin <= end && end <= width, "columns ", begin, " to ", end, " of ", width);
  StridedItems part = *this;
  part.data += static_cast<size_t>(begin) * size_of(dtype);
  part.width = end - begin;
  return part;
}

StridedItems StridedItems::item_range(int64_t begin, int64_t end) const {
  HCTR_EXPECT(0 <= begin && begin <= end && end <= items, "items ", begin, " to ", end, " of ", items);
  StridedItems part = *this;
  part.data += static_cast<size_t>(begin * item_stride) * size_of(dtype);
  part.items = end - begin;
  return part;
}

StridedItems StridedItems::repeated(int64_t times) const {
  HCTR_EXPECT(items == 1, items, " items repeated");
  StridedItems all = *this;
  all.items = times;
  all.item_stride = 0;
  return all;
}

void copy_items(Context& ctx, StridedItems x, StridedItems y) {
  expect_pair("copy_items", ctx, x, y, x.items);
  HCTR_ON_DEVICE(ctx, copy_items(ctx, x, y));
}

void cpu::copy_items(Context& ctx, StridedItems x, StridedItems y) {
  dispatch_real(x.dtype, [&]<class T>() {
    for_items(ctx, y.outer, y.items, y.width,
              [&](int64_t o, int64_t i) { std::copy_n(item<const T>(x, o, i), y.width, item<T>(y, o, i)); });
  });
}

void gather(Context& ctx, StridedItems x, const std::vector<int64_t>& indices, StridedItems y) {
  expect_pair("gather", ctx, x, y, static_cast<int64_t>(indices.size()));
  expect_indices("gather", indices, x.items);
  HCTR_ON_DEVICE(ctx, gather(ctx, x, indices, y));
}

void cpu::gather(Context& ctx, StridedItems x, const std::vector<int64_t>& indices, StridedItems y) {
  dispatch_real(x.dtype, [&]<class T>() {
    for_items(ctx, y.outer, y.items, y.width, [&](int64_t o, int64_t i) {
      std::copy_n(item<const T>(x, o, indices[static_cast<size_t>(i)]), y.width, item<T>(y, o, i));
    });
  });
}

void gather_backward(Context& ctx, StridedItems dy, const std::vector<int64_t>& indices, StridedItems dx) {
  expect_pair("gather_backward", ctx, dx, dy, static_cast<int64_t>(indices.size()));
  expect_indices("gather_backward", indices, dx.items);
  HCTR_ON_DEVICE(ctx, gather_backward(ctx, dy, indices, dx));
}

void cpu::gather_backward(Context& ctx, StridedItems dy, const std::vector<int64_t>& indices, StridedItems dx) {
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(dx.items));
  for (size_t i = 0; i < indices.size(); ++i)
    places[static_cast<size_t>(indices[i])].push_back(static_cast<int64_t>(i));
  dispatch_real(dx.dtype, [&]<class T>() {
    for_items(ctx, dx.outer, dx.items, dx.width, [&](int64_t o, int64_t s) {
      for (int64_t c = 0; c < dx.width; ++c) {
        Acc<T> sum = 0;
        for (const int64_t i : places[static_cast<size_t>(s)]) sum += static_cast<Acc<T>>(item<const T>(dy, o, i)[c]);
        item<T>(dx, o, s)[c] = static_cast<T>(sum);
      }
    });
  });
}

}  // namespace hctr::ops
