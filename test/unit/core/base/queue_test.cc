#include "core/base/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

namespace hctr::test {
namespace {

using namespace std::chrono_literals;

TEST(BoundedQueue, KeepsTheOrder) {
  BoundedQueue<int> queue(3);
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(queue.push(i));
    queue.close();
  });
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(queue.pop(), i);
  EXPECT_EQ(queue.pop(), std::nullopt);
  producer.join();
}

TEST(BoundedQueue, APushBeyondTheCapacityWaits) {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed = 0;
  std::thread producer([&] {
    for (int i = 0; i < 4; ++i) {
      queue.push(i);
      ++pushed;
    }
  });
  while (pushed < 2) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(pushed, 2);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.pop(), i);
  producer.join();
}

TEST(BoundedQueue, ClosingWakesAllThreads) {
  BoundedQueue<int> full(1), empty(1);
  full.push(1);
  std::thread producer([&] { EXPECT_FALSE(full.push(2)) << "an item pushed after closing is dropped"; });
  std::thread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  std::this_thread::sleep_for(10ms);
  full.close();
  empty.close();
  producer.join();
  consumer.join();
  EXPECT_EQ(full.pop(), 1) << "queued items can still be popped";
  EXPECT_EQ(full.pop(), std::nullopt);
  EXPECT_FALSE(full.push(3));
}

TEST(BoundedQueue, AnErrorIsThrownAfterTheItemsAndEveryTime) {
  BoundedQueue<std::unique_ptr<int>> queue(2);
  queue.push(std::make_unique<int>(5));
  queue.fail(std::make_exception_ptr(std::runtime_error("broken")));
  EXPECT_EQ(**queue.pop(), 5);
  EXPECT_THROW(queue.pop(), std::runtime_error);
  EXPECT_THROW(queue.pop(), std::runtime_error);
}

TEST(BoundedQueue, OnlyTheFirstCloseOrFailCounts) {
  BoundedQueue<int> queue(1);
  queue.close();
  queue.fail(std::make_exception_ptr(std::runtime_error("late")));
  EXPECT_EQ(queue.pop(), std::nullopt);
}

TEST(BoundedQueue, ServesManyProducersAndConsumers) {
  BoundedQueue<int> queue(4);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> producers, consumers;
  for (int p = 0; p < 3; ++p)
    producers.emplace_back([&] {
      for (int i = 1; i <= 500; ++i) queue.push(i);
    });
  for (int c = 0; c < 3; ++c)
    consumers.emplace_back([&] {
      while (const auto item = queue.pop()) sum += *item;
    });
  for (auto& thread : producers) thread.join();
  queue.close();
  for (auto& thread : consumers) thread.join();
  EXPECT_EQ(sum, 3 * 500 * 501 / 2);
}

}  // namespace
}  // namespace hctr::test
