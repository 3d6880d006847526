// A small stack limit is raised if possible, otherwise reported.
#include "program/stack_limit.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/base/expect.h"

namespace hctr::test {
namespace {

/// Runs `body` in a child process with these limits, and returns its exit code. Limits apply to whole processes.
int code_with_limits(rlim_t soft, rlim_t hard, const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{soft, hard};
    ::_exit(::setrlimit(RLIMIT_STACK, &limit) == 0 && body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr rlim_t kKiB = 1024, kStackMiB = 1024 * kKiB;

TEST(StackLimit, IsRaisedForAllThreads) {
  EXPECT_EQ(code_with_limits(64 * kKiB, 4 * kStackMiB,
                             [] {
                               raise_stack_limit();
                               rlimit now{};
                               ::getrlimit(RLIMIT_STACK, &now);
                               pthread_attr_t threads;
                               size_t bytes = 0;
                               ::pthread_getattr_default_np(&threads);
                               ::pthread_attr_getstacksize(&threads, &bytes);
                               return now.rlim_cur == 4 * kStackMiB && bytes == 4 * kStackMiB;
                             }),
            0);
  EXPECT_EQ(code_with_limits(2 * kStackMiB, 4 * kStackMiB,
                             [] {
                               raise_stack_limit();
                               rlimit now{};
                               ::getrlimit(RLIMIT_STACK, &now);
                               return now.rlim_cur == 2 * kStackMiB;
                             }),
            0);
}

TEST(StackLimit, IsNamedWhereItCannotBeRaised) {
  EXPECT_EQ(code_with_limits(64 * kKiB, 64 * kKiB,
                             [] {
                               try {
                                 raise_stack_limit();
                               } catch (const Error& error) {
                                 return error.kind() == Kind::device &&
                                        error.what() ==
                                            std::string(
                                                "the stack is limited to 64 KiB, but the program needs 1024; "
                                                "`ulimit -s 8192` sets the usual limit");
                               }
                               return false;
                             }),
            0);
}

}  // namespace
}  // namespace hctr::test
