#include "ops/embedding_pool.h"

#include <algorithm>

namespace hctr::ops {

namespace {

void expect_places(const KeyBatch& batch, const Tensor& y) {
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == batch.samples && y.dim(1) == batch.places, "pool y: shape ",
              to_string(y.shape()), " for ", batch.samples, " samples of ", batch.places, " places");
}

}  // namespace

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  expect_places(batch, y);
  HCTR_ON_DEVICE(ctx, pool(ctx, batch, rows, table, combiner, y));
}

void add_pooled(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  expect_places(batch, y);
  HCTR_ON_DEVICE(ctx, add_pooled(ctx, batch, rows, table, combiner, y));
}

namespace cpu {
namespace {

constexpr int64_t kBlock = 64;  // elements summed on the stack
constexpr int64_t kAhead = 16;  // rows fetched before their turn

template <class T, class Stored>
void pool_vectors(const KeyBatch& batch, const int32_t* rows, const Stored* table, Combiner combiner, const View<T, 3>& y, int64_t begin, int64_t end) {
  const int64_t dim = y.size(2), count = batch.size();
  for (int64_t v = begin; v < end; ++v) {
    const KeyRange keys = batch.keys_of(v);
    const float weight = batch.weight(combiner, v);
    T* vector = y.row(v % batch.samples) + v / batch.samples * dim;
    for (int64_t e = 0; e < dim; e += kBlock) {
      const int64_t n = std::min(kBlock, dim - e);
      float sum[kBlock] = {};
      for (int64_t p = keys.begin; p < keys.end; ++p) {
        if (p + kAhead < count) __builtin_prefetch(table + rows[p + kAhead] * dim + e);
        if (rows[p] == 0) continue;
        const Stored* row = table + rows[p] * dim + e;
        for (int64_t i = 0; i < n; ++i) sum[i] += static_cast<float>(row[i]);
      }
      for (int64_t i = 0; i < n; ++i) vector[e + i] = T(sum[i] * weight);
    }
  }
}

}  // namespace

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      ctx.threads().parallel_for(batch.vectors(), 1024, [&](int64_t begin, int64_t end) {
        pool_vectors(batch, rows, table.as<const Stored>(), combiner, y.view<T, 3>(), begin, end);
      });
    });
  });
}

void add_pooled(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  const int64_t dim = y.dim(2);
  dispatch_float(y.dtype(), [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      const auto to = y.view<T, 3>();
      ctx.threads().parallel_for(batch.vectors(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t v = begin; v < end; ++v) {
          const KeyRange keys = batch.keys_of(v);
          if (std::all_of(rows + keys.begin, rows + keys.end, [](int32_t row) { return row == 0; })) continue;
          const float weight = batch.weight(combiner, v);
          T* vector = to.row(v % batch.samples) + v / batch.samples * dim;
          for (int64_t e = 0; e < dim; ++e) {
            float sum = 0;
            for (int32_t p = keys.begin; p < keys.end; ++p)
              if (rows[p] != 0) sum += static_cast<float>(table.as<const Stored>()[rows[p] * dim + e]);
            vector[e] = T(static_cast<float>(vector[e]) + sum * weight);
          }
        }
      });
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
