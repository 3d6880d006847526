#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>

namespace hctr::test {
namespace {

TEST(ThreadPool, CoversARangeOnceWhateverTheGrain) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  for (const int64_t count : {0, 1, 7, 64, 1000})
    for (const int64_t grain : {-1, 1, 3, 64, 5000}) {
      std::vector<int> hits(static_cast<size_t>(count));
      pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_LE(end - begin, std::max<int64_t>(grain, 1));
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(count), 1)) << count << " by " << grain;
    }
}

TEST(ThreadPool, ChunksAreTheSameForAnyNumberOfThreads) {
  std::vector<float> values(10007);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const auto sum = [&](int threads) {
    ThreadPool pool(threads);
    constexpr int64_t kGrain = 100;
    std::vector<float> parts(values.size() / kGrain + 1);
    pool.parallel_for(static_cast<int64_t>(values.size()), kGrain, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(begin % kGrain, 0);
      parts[static_cast<size_t>(begin / kGrain)] = std::accumulate(values.begin() + begin, values.begin() + end, 0.0f);
    });
    return std::accumulate(parts.begin(), parts.end(), 0.0f);
  };
  const float one = sum(1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(sum(threads), one);
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      EXPECT_THROW(pool.parallel_for(100, 1,
                                     [](int64_t begin, int64_t) {
                                       if (begin == 17) throw std::runtime_error("seventeen");
                                     }),
                   std::runtime_error);
      std::atomic<int64_t> sum = 0;
      pool.parallel_for(100, 1, [&](int64_t begin, int64_t) { sum += begin; });
      EXPECT_EQ(sum, 4950);
    }
  }
}

TEST(ThreadPool, ManySmallLoopsInARow) {
  ThreadPool pool(3);
  int64_t total = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> parts(5);
    pool.parallel_for(5, 1, [&](int64_t begin, int64_t) { parts[static_cast<size_t>(begin)] = begin; });
    total += std::accumulate(parts.begin(), parts.end(), int64_t{0});
  }
  EXPECT_EQ(total, 20000);
}

TEST(UsableCores, IsAtLeastOne) { EXPECT_GE(usable_cores(), 1); }

}  // namespace
}  // namespace hctr::test
