#include "serve/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace hctr::serve {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(BufferPool, KeepsABoundedAmountAndReusesIt) {
  BufferPool pool;
  std::vector<std::shared_ptr<char>> held;
  for (int i = 0; i < 100; ++i) {
    held.push_back(pool.take(kMiB));
    std::fill_n(held.back().get(), kMiB, static_cast<char>(i));
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(std::count(held[static_cast<size_t>(i)].get(), held[static_cast<size_t>(i)].get() + kMiB, i), kMiB);
  const char* const first = held[0].get();
  held.clear();
  EXPECT_EQ(pool.kept(), BufferPool::kMostKept);
  bool again = false;
  for (int i = 0; i < 64; ++i) {
    held.push_back(pool.take(kMiB - 100));
    again |= held.back().get() == first;
  }
  EXPECT_TRUE(again);
  EXPECT_EQ(pool.kept(), 0u);
}

TEST(BufferPool, DoesNotWasteALargeBufferOnASmallRequest) {
  BufferPool pool;
  pool.take(16 * kMiB).reset();
  EXPECT_EQ(pool.kept(), 16 * kMiB);
  const auto small = pool.take(100'000);
  EXPECT_EQ(pool.kept(), 16 * kMiB);
  pool.take(100).reset();
  EXPECT_EQ(pool.kept(), 16 * kMiB) << "small buffers are not kept";
}

TEST(BufferPool, BuffersMayOutliveThePoolAndReturnFromAnyThread) {
  std::shared_ptr<char> last;
  {
    BufferPool pool;
    last = pool.take(kMiB);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&pool, t] {
        for (int i = 0; i < 500; ++i) {
          const auto own = pool.take(kMiB + static_cast<size_t>(i % 7) * 100'000);
          std::fill_n(own.get(), 1000, static_cast<char>(t));
          ASSERT_EQ(std::count(own.get(), own.get() + 1000, t), 1000);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(pool.kept(), BufferPool::kMostKept);
  }
  last.get()[kMiB - 1] = 1;
}

}  // namespace
}  // namespace hctr::serve
