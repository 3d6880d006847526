#include "ops/embedding_pool.h"

#include <algorithm>

namespace hctr::ops {

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, const float* table, Combiner combiner, Tensor y) {
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == batch.samples && y.dim(1) == batch.places, "pool y: shape ",
              to_string(y.shape()), " for ", batch.samples, " samples of ", batch.places, " places");
  HCTR_ON_DEVICE(ctx, pool(ctx, batch, rows, table, combiner, y));
}

namespace cpu {

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, const float* table, Combiner combiner, Tensor y) {
  constexpr int64_t kBlock = 64;  // elements summed on the stack
  constexpr int64_t kAhead = 16;  // rows fetched before their turn
  const int64_t dim = y.dim(2), count = batch.size();
  dispatch_float(y.dtype(), [&]<class T>() {
    const View<T, 3> out = y.view<T, 3>();
    ctx.threads().parallel_for(batch.vectors(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        const KeyRange keys = batch.keys_of(v);
        const float weight = batch.weight(combiner, v);
        T* vector = out.row(v % batch.samples) + v / batch.samples * dim;
        for (int64_t e = 0; e < dim; e += kBlock) {
          const int64_t n = std::min(kBlock, dim - e);
          float sum[kBlock] = {};
          for (int64_t p = keys.begin; p < keys.end; ++p) {
            if (p + kAhead < count) __builtin_prefetch(table + rows[p + kAhead] * dim + e);
            if (rows[p] == 0) continue;
            const float* row = table + rows[p] * dim + e;
            for (int64_t i = 0; i < n; ++i) sum[i] += row[i];
          }
          for (int64_t i = 0; i < n; ++i) vector[e + i] = T(sum[i] * weight);
        }
      }
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
