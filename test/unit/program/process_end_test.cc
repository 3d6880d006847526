// A process ends with its exit code and its whole output. Exit handlers run, unless threads still run.
#include "program/process_end.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "core/base/lasting_threads.h"

namespace hctr::test {
namespace {

/// Runs each test in a separate process.
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

TEST_F(ProcessEnd, SkipsExitHandlersIfThreadsStillRun) {
  const auto end = [] {
    // The test sees only stderr, so stdout is redirected there. stdout is buffered, so it must be flushed at the end.
    dup2(STDERR_FILENO, STDOUT_FILENO);
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
