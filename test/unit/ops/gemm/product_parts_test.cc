#include "ops/gemm/product_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

using ops::ProductPart;
using ops::Transpose;

TEST(ProductParts, ConsistOfWholeTilesEnoughForEveryThread) {
  for (const int64_t rows : {480, 512, 1000, 2048, 5000})
    for (const int64_t columns : {256, 429, 1024, 3001})
      for (const int threads : {1, 2, 3, 7, 16, 64}) {
        SCOPED_TRACE(cat(rows, " x ", columns, " with ", threads, " threads"));
        const ProductPart tile = ops::product_tile(rows, columns),
                          part = ops::joined_product_tiles(rows, columns, 2048, threads);
        EXPECT_EQ(tile.rows % 16, 0);
        EXPECT_EQ(tile.columns % 16, 0);
        EXPECT_EQ(part.rows % tile.rows, 0);
        EXPECT_EQ(part.columns % tile.columns, 0);
        const auto count = [&](ProductPart of) {
          return ops::parts_of(rows, of.rows) * ops::parts_of(columns, of.columns);
        };
        EXPECT_GE(count(part), std::min<int64_t>(threads, count(tile)));
        if (threads == 1) {
          EXPECT_EQ(count(part), 1);
        }
        if (threads == 2) {
          EXPECT_LT(count(part), count(tile));
        }
      }
}

/// The library copies (h + w) * depth elements for a part of h x w. Among parts of equal size, a square copies least. A
/// narrow or a flat result is split only along its long side.
TEST(ProductParts, AreOfTheShapeForWhichLeastIsCopied) {
  for (const int64_t size : {1024, 2048, 4096}) {
    const ProductPart of_square = ops::joined_product_tiles(size, size, 2048, 2);
    EXPECT_EQ(of_square.rows, size / 2);
    EXPECT_EQ(of_square.columns, size / 2);
    EXPECT_EQ(ops::joined_product_tiles(8 * size, size, 2048, 2).columns, size);
    EXPECT_EQ(ops::joined_product_tiles(size, 8 * size, 2048, 2).rows, size);
  }
}

/// The library has other kernels for small GEMMs and for GEMMs with few columns.
TEST(ProductParts, ProductsWithASmallTileStayInTiles) {
  for (const auto& [rows, columns, depth] : {std::array<int64_t, 3>{2048, 512, 13},
                                             {13, 512, 2048},
                                             {2048, 1, 256},
                                             {2048, 1025, 1024},
                                             {2049, 512, 2048}}) {
    const ProductPart tile = ops::product_tile(rows, columns),
                      part = ops::joined_product_tiles(rows, columns, depth, 1);
    EXPECT_EQ(part.rows, tile.rows) << rows << " x " << columns;
    EXPECT_EQ(part.columns, tile.columns) << rows << " x " << columns;
  }
}

/// The bits of the three GEMMs of a layer, computed with `threads` threads.
std::vector<std::vector<float>> products_of_layer(int64_t batch, int64_t in, int64_t out, int threads) {
  Runtime runtime(kCpu, {.threads = threads, .seed = 7});
  Context ctx(runtime, runtime.compute_stream());
  std::vector<Buffer> memory;
  const auto make = [&](Shape shape, uint64_t seed) {
    const TensorSpec spec(DType::f32, std::move(shape));
    memory.emplace_back(kCpu, spec.bytes());
    const Tensor t(memory.back().data(), spec, kCpu);
    for (int64_t i = 0; i < t.elements(); ++i)
      t.data<float>()[i] = static_cast<float>(mix64(seed + static_cast<uint64_t>(i)) >> 40) / (1 << 23) - 1;
    return t;
  };
  const Tensor x = make({batch, in}, 1), w = make({in, out}, 1u << 28), bias = make({out}, 3),
               d_y = make({batch, out}, 1u << 29);
  const Tensor y = make({batch, out}, 4), d_x = make({batch, in}, 5), d_w = make({in, out}, 6);
  ops::linear(ctx, x, w, bias, y, true);
  ops::matmul(ctx, d_y, Transpose::no, w, Transpose::yes, d_x);
  ops::matmul(ctx, x, Transpose::yes, d_y, Transpose::no, d_w);
  std::vector<std::vector<float>> results;
  for (const Tensor& t : {y, d_x, d_w}) results.push_back(to_host<float>(ctx.stream(), t));
  return results;
}

/// The number of threads determines which tiles are merged, but must not change the bits. With sixteen threads no tiles
/// are merged.
TEST(ProductParts, AnyNumberOfThreadsGivesTheSameBits) {
  for (const auto& [batch, in, out] :
       {std::array<int64_t, 3>{512, 429, 1000}, {700, 1024, 521}, {2048, 128, 256}, {600, 13, 512}, {1030, 480, 1}}) {
    const auto expected = products_of_layer(batch, in, out, 16);
    for (const int threads : {1, 2, 3, 5}) {
      const auto results = products_of_layer(batch, in, out, threads);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(results[i] == expected[i])
            << batch << " x " << in << " x " << out << ", product " << i << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace hctr::test
