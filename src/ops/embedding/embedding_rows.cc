#include "ops/embedding/embedding_rows.h"

#include <algorithm>
#include <cstring>

namespace hctr::ops {
namespace {

void expect_words(const char* what, const Tensor& x, const RowMemory& table) {
  const bool fits = x.dtype() == table.dtype || (x.dtype() == DType::f32 && size_of(table.dtype) == 2);
  HCTR_EXPECT(x.dense() && size_of(x.dtype()) == 4 && fits, what, ": ", name_of(x.dtype()), " ", to_string(x.shape()),
              " and rows of ", name_of(table.dtype));
}

}  // namespace

void init_new_rows(Context& ctx, HashIndex index, RowInit init, RowData data) {
  HCTR_ON_DEVICE(ctx, init_new_rows(ctx, index, init, data));
}
void init_rows(Context& ctx, const int32_t* rows, int64_t count, RowInit init, RowData data) {
  HCTR_ON_DEVICE(ctx, init_rows(ctx, rows, count, init, data));
}
void gather_rows(Context& ctx, const int32_t* rows, RowMemory table, Tensor x) {
  expect_words("gather_rows", x, table);
  HCTR_ON_DEVICE(ctx, gather_rows(ctx, rows, table, x));
}
void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, RowMemory table) {
  expect_words("scatter_rows", x, table);
  HCTR_ON_DEVICE(ctx, scatter_rows(ctx, rows, x, table));
}
void copy_rows(Context& ctx, const int32_t* rows, int64_t count, const void* column, int64_t bytes, void* to) {
  HCTR_ON_DEVICE(ctx, copy_rows(ctx, rows, count, column, bytes, to));
}

namespace cpu {
namespace {

constexpr int64_t kNewRowsAtATime = 64;

void init_row(const RowInit& init, const RowData& data, int64_t row) {
  const RowOwner owner = data.identity.of(row);
  const float bound = init.bound_of(owner.slot);
  dispatch_float(data.vectors.dtype, [&]<class T>() {
    T* vector = data.vectors.as<T>() + row * data.dim;
    for (int64_t e = 0; e < data.dim; e += 4) {
      const Random4 bits = init.four(owner.key, owner.slot, e);
      for (int64_t i = 0; i < std::min<int64_t>(4, data.dim - e); ++i)
        vector[e + i] = rounded_to_nearest<T>(init.value(bits.v[i], bound));
    }
  });
  for (int s = 0; s < kMostStates; ++s)
    if (init.writes(s, data.states[s]))
      dispatch_float(data.states[s].dtype, [&]<class T>() {
        std::fill_n(data.states[s].as<T>() + row * data.state_dim, data.state_dim,
                    rounded_to_nearest<T>(init.state_start[s]));
      });
}

}  // namespace

void init_new_rows(Context& ctx, HashIndex index, RowInit init, RowData data) {
  const int64_t first = index.state->ready + 1, last = std::min(index.state->rows, index.state->row_capacity);
  ctx.threads().parallel_for(last - first + 1, kNewRowsAtATime, [&](int64_t begin, int64_t end) {
    for (int64_t row = first + begin; row < first + end; ++row) init_row(init, data, row);
  });
}

void init_rows(Context& ctx, const int32_t* rows, int64_t count, RowInit init, RowData data) {
  ctx.threads().parallel_for(count, kNewRowsAtATime, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) init_row(init, data, rows[i]);
  });
}

void gather_rows(Context& ctx, const int32_t* rows, RowMemory table, Tensor x) {
  const int64_t words = x.row_elements();
  ctx.threads().parallel_for(x.rows(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (table.dtype == x.dtype()) {
        std::memcpy(x.bytes() + i * words * 4, table.address(rows[i] * words), static_cast<size_t>(words) * 4);
        continue;
      }
      dispatch_float(table.dtype, [&]<class T>() {
        const T* from = table.as<const T>() + rows[i] * words;
        std::transform(from, from + words, x.data<float>() + i * words,
                       [](T value) { return static_cast<float>(value); });
      });
    }
  });
}

void copy_rows(Context& ctx, const int32_t* rows, int64_t count, const void* column, int64_t bytes, void* to) {
  ctx.threads().parallel_for(count, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * bytes, static_cast<const std::byte*>(column) + rows[i] * bytes,
                  static_cast<size_t>(bytes));
  });
}

void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, RowMemory table) {
  const int64_t words = x.row_elements();
  ctx.threads().parallel_for(x.rows(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (rows[i] == 0) continue;
      if (table.dtype == x.dtype()) {
        std::memcpy(table.address(rows[i] * words), x.bytes() + i * words * 4, static_cast<size_t>(words) * 4);
        continue;
      }
      dispatch_float(table.dtype, [&]<class T>() {
        const float* from = x.data<const float>() + i * words;
        std::transform(from, from + words, table.as<T>() + rows[i] * words,
                       [](float value) { return rounded_to_nearest<T>(value); });
      });
    }
  });
}

}  // namespace cpu
}  // namespace hctr::ops
