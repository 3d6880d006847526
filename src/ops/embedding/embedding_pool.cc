#include "ops/embedding/embedding_pool.h"

#include <algorithm>
#include <cstddef>

#include "core/base/prefetch.h"

namespace hctr::ops {

namespace {

void expect_columns(const KeyBatch& batch, const Tensor& y) {
  HCTR_EXPECT(y.rank() == 3 && y.dim(0) == batch.samples && y.dim(1) == batch.columns, "pool y: shape ",
              to_string(y.shape()), " for ", batch.samples, " samples of ", batch.columns, " columns");
}

}  // namespace

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  expect_columns(batch, y);
  HCTR_ON_DEVICE(ctx, pool(ctx, batch, rows, table, combiner, y));
}

void pool_others(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner,
                 OwnerVectors owners, Tensor y) {
  expect_columns(batch, y);
  HCTR_EXPECT(owners.columns == batch.columns * owners.pieces, "pool of ", batch.columns,
              " columns needs owner vectors of ", batch.columns * owners.pieces, " columns (", owners.pieces,
              " pieces), found ", owners.columns);
  HCTR_ON_DEVICE(ctx, pool_others(ctx, batch, rows, table, combiner, owners, y));
}

void pool_shards(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, int64_t dim,
                 SampleShards shards) {
  HCTR_EXPECT(batch.samples == shards.ranks * shards.samples && 0 <= shards.first && shards.first < shards.ranks,
              "pool of ", batch.samples, " samples for ", shards.ranks, " ranks with ", shards.samples, ", from rank ",
              shards.first, " on");
  HCTR_ON_DEVICE(ctx, pool_shards(ctx, batch, rows, table, combiner, dim, shards));
}

namespace cpu {
namespace {

constexpr int64_t kPoolBlock = 64;     // elements of the stack buffer
constexpr int64_t kVectorsAhead = 48;  // prefetch distance in vectors
constexpr int64_t kVectors = 1024;     // vectors per task iteration

/// y[i] = weight * the sum, over the rows of `keys`, of element i, for i < n <= kPoolBlock.
template <class T, class Stored>
void sum_block(const int32_t* rows, KeyRange keys, const Stored* table, int64_t dim, float weight, int64_t n, T* y) {
  float sum[kPoolBlock];
  bool any = false;
  for (int32_t p = keys.begin; p < keys.end; ++p) {
    if (rows[p] == 0) continue;
    const Stored* row = table + rows[p] * dim;
    if (any) {
      for (int64_t i = 0; i < n; ++i) sum[i] += static_cast<float>(row[i]);
    } else {  // a sum starts with 0.0f + the first row, which turns -0 into 0
      for (int64_t i = 0; i < n; ++i) sum[i] = 0.0f + static_cast<float>(row[i]);
    }
    any = true;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = any ? T(sum[i] * weight) : T(0.0f);
}

/// The rows of one output vector. The row of a single key is stored inline.
struct VectorRows {
  KeyRange keys;
  int32_t only;

  VectorRows() = default;
  VectorRows(KeyRange range, const int32_t* rows) : keys(range), only(size() == 1 ? rows[range.begin] : 0) {}
  int32_t size() const { return keys.end - keys.begin; }
  const int32_t* begin(const int32_t* rows) const { return size() == 1 ? &only : rows + keys.begin; }
};

/// Pools at most kVectors vectors in two passes. The first pass collects the rows of each vector slot by slot, in the
/// memory order of the keys. The second pass writes the vectors sample by sample, in the usual memory order of the
/// output, to the address to(sample, column, empty); null skips the vector. A single pass would alternate between
/// slots, whose keys are a whole batch apart, and evict cache lines.
template <class Stored, class To>
void pool_part(const KeyBatch& batch, const int32_t* rows, const Stored* table, Combiner combiner, int64_t dim,
               int64_t first_sample, int64_t samples, int64_t first_column, int64_t columns, const To& to) {
  const int64_t count = samples * columns;
  VectorRows of[kVectors];
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t b = 0; b < samples; ++b)
      of[b * columns + i] = VectorRows(batch.keys_of((first_column + i) * batch.samples + first_sample + b), rows);
  const auto bytes = static_cast<size_t>(dim) * sizeof(Stored);
  int64_t b = first_sample, column = first_column;
  for (int64_t j = -kVectorsAhead; j < count; ++j) {
    if (j + kVectorsAhead < count) {
      const int32_t* next = of[j + kVectorsAhead].begin(rows);
      for (int32_t k = 0; k < of[j + kVectorsAhead].size(); ++k) prefetch(table + next[k] * dim, bytes);
    }
    if (j < 0) continue;
    const float weight = batch.weight(combiner, column * batch.samples + b);
    auto* vector = to(b, column, of[j].size() == 0);
    for (int64_t e = 0; e < dim && vector; e += kPoolBlock)
      sum_block(of[j].begin(rows), {0, of[j].size()}, table + e, dim, weight, std::min(kPoolBlock, dim - e),
                vector + e);
    if (++column == first_column + columns) {
      column = first_column;
      ++b;
    }
  }
}

/// Pools the vectors of samples [begin, end).
template <class Stored, class To>
void pool_range(Context& ctx, const KeyBatch& batch, const int32_t* rows, const Stored* table, Combiner combiner,
                int64_t dim, int64_t begin, int64_t end, const To& to) {
  const int64_t columns = std::min(kVectors, batch.columns),
                samples = std::max<int64_t>(1, kVectors / std::max<int64_t>(1, columns));
  ctx.threads().parallel_for(end - begin, samples, [&](int64_t from, int64_t until) {
    for (int64_t b = from; b < until; b += samples)
      for (int64_t column = 0; column < batch.columns; column += columns)
        pool_part(batch, rows, table, combiner, dim, begin + b, std::min(samples, until - b), column,
                  std::min(columns, batch.columns - column), to);
  });
}

/// Calls body.operator()<T, Stored>() with the element types of the vectors and of the table.
template <class Body>
void dispatch_vectors_and_rows(DType vectors, const RowMemory& table, const Body& body) {
  dispatch_float(vectors, [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() { body.template operator()<T, Stored>(); });
  });
}

}  // namespace

void pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  dispatch_vectors_and_rows(y.dtype(), table, [&]<class T, class Stored>() {
    const auto out = y.view<T, 3>();
    pool_range(ctx, batch, rows, table.as<const Stored>(), combiner, y.dim(2), 0, batch.samples,
               [&](int64_t b, int64_t column, bool) { return out.row(b) + column * out.size(2); });
  });
}

void pool_others(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner,
                 OwnerVectors owners, Tensor y) {
  dispatch_vectors_and_rows(y.dtype(), table, [&]<class T, class Stored>() {
    const auto out = y.view<T, 3>();
    pool_range(ctx, batch, rows, table.as<const Stored>(), combiner, y.dim(2), 0, batch.samples,
               [&](int64_t b, int64_t column, bool) {
                 return owners.any_owner(column, b) ? nullptr : out.row(b) + column * out.size(2);
               });
  });
}

void pool_shards(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, int64_t dim,
                 SampleShards shards) {
  if (!shards.memory.writable()) return;
  dispatch_vectors_and_rows(shards.memory.dtype, table, [&]<class T, class Stored>() {
    for (int64_t rank = 0; rank < shards.ranks; ++rank) {
      if (!shards.shard[rank]) continue;
      const int64_t begin = rank * shards.samples;
      const auto to = [&](int64_t b, int64_t column, bool empty) -> T* {
        if (empty) return nullptr;
        return reinterpret_cast<T*>(shards.shard[rank]) + (b - begin) * shards.row_stride +
               (shards.targets ? shards.targets[column] : column) * dim;
      };
      pool_range(ctx, batch, rows, table.as<const Stored>(), combiner, dim, begin, begin + shards.samples, to);
    }
  });
}

}  // namespace cpu
}  // namespace hctr::ops
