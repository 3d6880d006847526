// How programs end: with their exit code, what they printed, and exit handlers where these may run.
#include "base/process_end.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

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
  const auto end = [] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // which the test reads, and which keeps what it is given until it is flushed
    say_at_exit();
    threads_outlive_main();
    std::fputs("printed ", stdout);
    std::cout << "twice";
    end_process(3);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(3), "^printed twice$");
}

}  // namespace
}  // namespace hctr::test
