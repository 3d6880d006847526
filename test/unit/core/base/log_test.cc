// Log lines and their sinks.
#include "core/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace hctr::test {
namespace {

TEST(Log, GivesALineToItsSink) {
  std::string all;
  const Log log([&](Level level, std::string_view line) { all += cat(static_cast<int>(level), line, "\n"); });
  log.info("one ", 1);
  log.warning("two");
  log.error("three");
  EXPECT_EQ(all, "0one 1\n1two\n2three\n");
}

TEST(Log, ThatFiltersAnotherDoesNotWaitForItself) {
  std::string all;
  const Log log([&](Level, std::string_view line) { all += line; });
  const Log errors([log](Level level, std::string_view line) {
    if (level == Level::error) log.error(line);
  });
  errors.info("a");
  errors.error("b");
  EXPECT_EQ(all, "b");
}

TEST(Log, OfSeveralThreadsDoesNotMixLinesAndOneSinkDoesNotHoldAnotherUp) {
  std::vector<std::string> lines;
  const Log log([&](Level, std::string_view line) { lines.emplace_back(line); });
  const Log held([&](Level, std::string_view) {
    std::thread([&] { log.info("beside"); }).join();  // with one lock for all logs this would deadlock
  });
  held.info("x");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, copy = log] {
      for (int i = 0; i < 100; ++i) copy.info("line");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.size(), 401u);
  Log::silent().info("nobody");
}

}  // namespace
}  // namespace hctr::test
