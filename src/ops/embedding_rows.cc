#include "ops/embedding_rows.h"

#include <algorithm>
#include <cstring>

namespace hctr::ops {
namespace {

void expect_words(const char* what, const Tensor& x) {
  HCTR_EXPECT(x.dense() && size_of(x.dtype()) == 4, what, ": ", name_of(x.dtype()), " ", to_string(x.shape()));
}

}  // namespace

void init_new_rows(Context& ctx, HashIndex index, RowInit init, RowData data) {
  HCTR_ON_DEVICE(ctx, init_new_rows(ctx, index, init, data));
}
void gather_rows(Context& ctx, const int32_t* rows, const void* table, Tensor x) {
  expect_words("gather_rows", x);
  HCTR_ON_DEVICE(ctx, gather_rows(ctx, rows, table, x));
}
void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, void* table) {
  expect_words("scatter_rows", x);
  HCTR_ON_DEVICE(ctx, scatter_rows(ctx, rows, x, table));
}

namespace cpu {

void init_new_rows(Context& ctx, HashIndex index, RowInit init, RowData data) {
  const int64_t first = index.state->ready + 1, last = std::min(index.state->rows, index.state->row_capacity);
  ctx.threads().parallel_for(last - first + 1, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = first + begin; row < first + end; ++row) {
      const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
      const float bound = init.bound_of(slot);
      float* vector = data.vectors + row * data.dim;
      for (int64_t e = 0; e < data.dim; e += 4) {
        const Random4 bits = init.four(index.row_keys[row], slot, e);
        for (int64_t i = 0; i < std::min<int64_t>(4, data.dim - e); ++i)
          vector[e + i] = symmetric_float(bits.v[i], bound);
      }
      for (int s = 0; s < kMostStates; ++s)
        if (init.state_start[s] != 0) std::fill_n(data.states[s] + row * data.state_dim, data.state_dim, init.state_start[s]);
    }
  });
}

void gather_rows(Context& ctx, const int32_t* rows, const void* table, Tensor x) {
  const auto bytes = x.row_elements() * 4;
  ctx.threads().parallel_for(x.rows(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(x.bytes() + i * bytes, static_cast<const std::byte*>(table) + rows[i] * bytes,
                  static_cast<size_t>(bytes));
  });
}

void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, void* table) {
  const auto bytes = x.row_elements() * 4;
  ctx.threads().parallel_for(x.rows(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (rows[i] != 0)
        std::memcpy(static_cast<std::byte*>(table) + rows[i] * bytes, x.bytes() + i * bytes,
                    static_cast<size_t>(bytes));
  });
}

}  // namespace cpu
}  // namespace hctr::ops
