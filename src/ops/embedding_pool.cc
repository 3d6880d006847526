#include "ops/embedding_pool.h"

#include <algorithm>
#include <cstddef>

namespace hctr::ops {

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == batch.samples && y.dim(1) == batch.places, "pool y: shape ",
              to_string(y.shape()), " for ", batch.samples, " samples of ", batch.places, " places");
  HCTR_ON_DEVICE(ctx, pool(ctx, batch, rows, table, combiner, y));
}

namespace cpu {
namespace {

constexpr int64_t kBlock = 64;      // elements summed on the stack
constexpr int64_t kAhead = 4;       // samples whose rows are fetched before their turn
constexpr int64_t kVectors = 1024;  // that a thread takes at a time
constexpr size_t kLine = 64;        // bytes of a line of the cache

/// y[i] = weight * the sum of element i of the rows of some keys, for i < n <= kBlock.
template <class T, class Stored>
void sum_block(const int32_t* rows, KeyRange keys, const Stored* table, int64_t dim, float weight, int64_t n, T* y) {
  float sum[kBlock];
  bool any = false;
  for (int32_t p = keys.begin; p < keys.end; ++p) {
    if (rows[p] == 0) continue;
    const Stored* row = table + rows[p] * dim;
    if (any) {
      for (int64_t i = 0; i < n; ++i) sum[i] += static_cast<float>(row[i]);
    } else {  // sums start at 0, which makes a 0 of -0
      for (int64_t i = 0; i < n; ++i) sum[i] = 0.0f + static_cast<float>(row[i]);
    }
    any = true;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = any ? T(sum[i] * weight) : T(0.0f);
}

template <class Stored>
void fetch_rows(const int32_t* rows, KeyRange keys, const Stored* table, int64_t dim) {
  for (int32_t p = keys.begin; p < keys.end; ++p) {
    const auto* row = reinterpret_cast<const std::byte*>(table + rows[p] * dim);
    for (size_t at = 0; at < static_cast<size_t>(dim) * sizeof(Stored); at += kLine) __builtin_prefetch(row + at);
  }
}

/// Sample by sample, as the vectors lie in y: whole lines are written one after the other.
template <class T, class Stored>
void pool_samples(const KeyBatch& batch, const int32_t* rows, const Stored* table, Combiner combiner, const View<T, 3>& y, int64_t begin, int64_t end) {
  const int64_t dim = y.size(2);
  for (int64_t b = begin; b < end; ++b)
    for (int64_t place = 0; place < batch.places; ++place) {
      const int64_t v = place * batch.samples + b;
      const KeyRange keys = batch.keys_of(v);
      if (b + kAhead < end) fetch_rows(rows, batch.keys_of(v + kAhead), table, dim);
      const float weight = batch.weight(combiner, v);
      T* vector = y.row(b) + place * dim;
      for (int64_t e = 0; e < dim; e += kBlock) sum_block(rows, keys, table + e, dim, weight, std::min(kBlock, dim - e), vector + e);
    }
}

}  // namespace

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      ctx.threads().parallel_for(batch.samples, std::max<int64_t>(1, kVectors / std::max<int64_t>(1, batch.places)), [&](int64_t begin, int64_t end) {
        pool_samples(batch, rows, table.as<const Stored>(), combiner, y.view<T, 3>(), begin, end);
      });
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
