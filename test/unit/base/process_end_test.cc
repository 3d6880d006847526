// How programs end: with their exit code, what they printed, and exit handlers where these may run.
#include "base/process_end.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace hctr::test {
namespace {

/// Each in a process of its own.
class ProcessEnd : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void say_at_exit() {
  std::atexit([] { std::fputs("handled", stderr); });
}

TEST_F(ProcessEnd, RunsExitHandlers) {
  EXPECT_EXIT((say_at_exit(), end_process(3)), testing::ExitedWithCode(3), "handled");
}

TEST_F(ProcessEnd, LeavesThemOutWhereThreadsStillRun) {
  EXPECT_EXIT((say_at_exit(), threads_outlive_main(), std::fputs("printed", stderr), end_process(3)), testing::ExitedWithCode(3), "^printed$");
}

}  // namespace
}  // namespace hctr::test
