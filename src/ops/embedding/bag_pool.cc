#include "ops/embedding/bag_pool.h"

#include <algorithm>
#include <cmath>

namespace hctr::ops {
namespace {

void expect_vectors(const char* what, const BagList& bags, BagPooling pooling, const Tensor& y) {
  expect_shape(what, y, {pooling == BagPooling::none ? bags.most : bags.bags, y.dim(1)});
  HCTR_EXPECT(y.dtype() == DType::f32, what, " of type ", name_of(y.dtype()));
}

}  // namespace

void pool_bags(Context& ctx, BagList bags, RowMemory table, BagPooling pooling, Tensor y, int32_t* chosen) {
  expect_vectors("pool_bags y", bags, pooling, y);
  HCTR_EXPECT((pooling == BagPooling::max) == (chosen != nullptr),
              "pool_bags: memory for the positions of the largest elements is required with max pooling and not "
              "allowed otherwise");
  HCTR_ON_DEVICE(ctx, pool_bags(ctx, bags, table, pooling, y, chosen));
}

void key_gradients(Context& ctx, BagList bags, BagPooling pooling, Tensor dy, const int32_t* chosen, float* g) {
  expect_vectors("key_gradients dy", bags, pooling, dy);
  HCTR_ON_DEVICE(ctx, key_gradients(ctx, bags, pooling, dy, chosen, g));
}

void weight_gradients(Context& ctx, BagList bags, RowMemory table, BagPooling pooling, Tensor dy, float* dw) {
  expect_vectors("weight_gradients dy", bags, pooling, dy);
  HCTR_EXPECT(bags.weights && pooling != BagPooling::max && pooling != BagPooling::none,
              "weight_gradients() needs weighted bags with sum or mean pooling");
  HCTR_ON_DEVICE(ctx, weight_gradients(ctx, bags, table, pooling, dy, dw));
}

namespace cpu {
namespace {

constexpr int64_t kBagsEach = 256;

float weight_at(const BagList& bags, int64_t p) { return bags.weights ? bags.weights[p] : 1.0f; }

/// Returns 1 / divisor of a bag, or 0 if the divisor is 0.
float scale_of(const BagList& bags, BagPooling pooling, int64_t bag) {
  float weights = 0, squares = 0;
  for (int64_t p = bags.offsets[bag]; p < bags.offsets[bag + 1]; ++p) {
    weights += weight_at(bags, p);
    squares += weight_at(bags, p) * weight_at(bags, p);
  }
  const float divisor = bag_divisor(pooling, weights, squares);
  return divisor == 0 ? 0.0f : 1.0f / divisor;
}

template <class Stored>
void pool_largest(const BagList& bags, const Stored* table, int64_t bag, int64_t dim, float* y, int32_t* chosen) {
  std::fill_n(y, dim, 0.0f);
  std::fill_n(chosen, dim, -1);
  for (int64_t p = bags.offsets[bag]; p < bags.offsets[bag + 1]; ++p) {
    if (bags.rows[p] == 0) continue;
    const Stored* row = table + bags.rows[p] * dim;
    for (int64_t e = 0; e < dim; ++e) {
      const auto value = static_cast<float>(row[e]);
      if (chosen[e] >= 0 && !(value > y[e])) continue;
      y[e] = value;
      chosen[e] = static_cast<int32_t>(p);
    }
  }
}

template <class Stored>
void pool_sum(const BagList& bags, const Stored* table, BagPooling pooling, int64_t bag, int64_t dim, float* y) {
  std::fill_n(y, dim, 0.0f);
  for (int64_t p = bags.offsets[bag]; p < bags.offsets[bag + 1]; ++p) {
    if (bags.rows[p] == 0) continue;
    const Stored* row = table + bags.rows[p] * dim;
    const float weight = weight_at(bags, p);
    for (int64_t e = 0; e < dim; ++e) y[e] += weight * static_cast<float>(row[e]);
  }
  if (pooling == BagPooling::sum) return;
  const float scale = scale_of(bags, pooling, bag);
  for (int64_t e = 0; e < dim; ++e) y[e] *= scale;
}

template <class Stored>
float dot_of_row(const Stored* row, const float* dy, int64_t dim) {
  float parts[32] = {};
  for (int64_t e = 0; e < dim; ++e) parts[e % 32] += static_cast<float>(row[e]) * dy[e];
  for (int distance = 16; distance > 0; distance /= 2)
    for (int i = 0; i < distance; ++i) parts[i] += parts[i + distance];
  return parts[0];
}

}  // namespace

void pool_bags(Context& ctx, BagList bags, RowMemory table, BagPooling pooling, Tensor y, int32_t* chosen) {
  const int64_t dim = y.dim(1), first = bags.offsets[0], last = bags.offsets[bags.bags];
  const auto out = y.matrix<float>();
  dispatch_float(table.dtype, [&]<class Stored>() {
    const auto* rows = table.as<const Stored>();
    if (pooling == BagPooling::none)
      return ctx.threads().parallel_for(bags.most, kBagsEach, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = first + i < last ? bags.rows[first + i] : 0;
          if (row == 0)
            std::fill_n(out.row(i), dim, 0.0f);
          else
            std::transform(rows + row * dim, rows + (row + 1) * dim, out.row(i),
                           [](Stored value) { return static_cast<float>(value); });
        }
      });
    ctx.threads().parallel_for(bags.bags, kBagsEach, [&](int64_t begin, int64_t end) {
      for (int64_t bag = begin; bag < end; ++bag)
        if (pooling == BagPooling::max)
          pool_largest(bags, rows, bag, dim, out.row(bag), chosen + bag * dim);
        else
          pool_sum(bags, rows, pooling, bag, dim, out.row(bag));
    });
  });
}

void key_gradients(Context& ctx, BagList bags, BagPooling pooling, Tensor dy, const int32_t* chosen, float* g) {
  const int64_t dim = dy.dim(1), first = bags.offsets[0], last = bags.offsets[bags.bags];
  const auto from = dy.matrix<const float>();
  if (pooling == BagPooling::none)
    return ctx.threads().parallel_for(last - first, kBagsEach, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::copy_n(from.row(i), dim, g + (first + i) * dim);
    });
  ctx.threads().parallel_for(bags.bags, kBagsEach, [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag) {
      const float scale = pooling == BagPooling::max ? 1.0f : scale_of(bags, pooling, bag);
      for (int64_t p = bags.offsets[bag]; p < bags.offsets[bag + 1]; ++p) {
        const float weight = weight_at(bags, p) * scale;
        for (int64_t e = 0; e < dim; ++e)
          g[p * dim + e] = pooling != BagPooling::max   ? weight * from(bag, e)
                           : chosen[bag * dim + e] == p ? from(bag, e)
                                                        : 0.0f;
      }
    }
  });
}

void weight_gradients(Context& ctx, BagList bags, RowMemory table, BagPooling pooling, Tensor dy, float* to) {
  const int64_t dim = dy.dim(1);
  const auto from = dy.matrix<const float>();
  float* const dw = to - bags.offsets[0];
  dispatch_float(table.dtype, [&]<class Stored>() {
    const auto* rows = table.as<const Stored>();
    ctx.threads().parallel_for(bags.bags, kBagsEach, [&](int64_t begin, int64_t end) {
      for (int64_t bag = begin; bag < end; ++bag) {
        const float scale = scale_of(bags, pooling, bag);
        float sum = 0;  // the sum of weight * (row . dy) over the bag, in key order
        for (int64_t p = bags.offsets[bag]; p < bags.offsets[bag + 1]; ++p) {
          const int64_t row = bags.rows[p];
          dw[p] = row == 0 ? 0.0f : dot_of_row(rows + row * dim, from.row(bag), dim);
          sum += bags.weights[p] * dw[p];
        }
        for (int64_t p = bags.offsets[bag]; p < bags.offsets[bag + 1]; ++p)
          dw[p] = weight_gradient(pooling, dw[p], bags.weights[p], scale, sum);
      }
    });
  });
}

}  // namespace cpu
}  // namespace hctr::ops
