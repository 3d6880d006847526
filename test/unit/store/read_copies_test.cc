#include "store/read_copies.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace hctr::test {
namespace {

TEST(ReadCopies, AReadingKeepsItsValueAndTheWriterWaitsForIt) {
  ReadCopies<std::shared_ptr<int>> copies(std::make_shared<int>(1));
  std::optional<ReadCopies<std::shared_ptr<int>>::Reading> early(std::in_place, copies);
  const std::weak_ptr<int> first = *early.value();
  std::atomic<bool> replaced{false};
  std::thread writer([&] {
    copies.replace(std::make_shared<int>(2));
    replaced = true;
  });
  while (**ReadCopies<std::shared_ptr<int>>::Reading(copies) != 2) std::this_thread::yield();
  EXPECT_FALSE(replaced.load());
  EXPECT_EQ(***early, 1);
  early.reset();
  writer.join();
  EXPECT_TRUE(first.expired());
}

TEST(ReadCopies, SetDoesNotWaitForReadersOfTheValueBefore) {
  ReadCopies<std::shared_ptr<int>> copies(std::make_shared<int>(1));
  std::optional<ReadCopies<std::shared_ptr<int>>::Reading> early(std::in_place, copies);
  const std::weak_ptr<int> first = *early.value();
  copies.set(std::make_shared<int>(2));
  EXPECT_EQ(***early, 1);
  std::atomic<bool> set{false};
  std::thread writer([&] {
    // ReadCopies has two copies. This call overwrites the copy with the first value, so it waits until `early` is
    // destroyed.
    copies.set(std::make_shared<int>(3));
    set = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(set.load());
  EXPECT_EQ(**ReadCopies<std::shared_ptr<int>>::Reading(copies), 2);
  early.reset();
  writer.join();
  EXPECT_TRUE(first.expired());
  const std::weak_ptr<int> third = copies.get();
  copies.set(std::make_shared<int>(4));
  EXPECT_TRUE(third.expired()) << "a value without readers is destroyed at once";
}

TEST(ReadCopies, TheLastReaderDestroysAPreviousValue) {
  ReadCopies<std::shared_ptr<int>> copies(std::make_shared<int>(1));
  using Reading = ReadCopies<std::shared_ptr<int>>::Reading;
  std::optional<Reading> early(std::in_place, copies), also_early(std::in_place, copies);
  const std::weak_ptr<int> first = *early.value();
  copies.set(std::make_shared<int>(2));
  copies.wait_for(std::chrono::milliseconds(1));
  early.reset();
  EXPECT_FALSE(first.expired());
  { const Reading late(copies); }
  EXPECT_FALSE(first.expired());
  also_early.reset();
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(*copies.get(), 2);
}

TEST(ReadCopies, ReadersSeeWholeValuesWhileTheyAreReplaced) {
  using Values = std::vector<int>;
  ReadCopies<Values> copies(Values(16, 0));
  std::atomic<bool> done{false};
  std::atomic<int64_t> torn{0}, went_back{0};
  const auto read = [&] {
    for (int last = 0; !done.load();) {
      const ReadCopies<Values>::Reading values(copies);
      for (const int value : *values) torn += value != values->front();
      went_back += values->front() < last;
      last = values->front();
    }
  };
  std::thread readers[2] = {std::thread(read), std::thread(read)};
  for (int i = 1; i <= 2000; ++i) copies.replace(Values(16, i));
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(went_back.load(), 0);
}

}  // namespace
}  // namespace hctr::test
