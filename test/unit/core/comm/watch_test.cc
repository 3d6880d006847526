// What a process does that another one tells to end.
#include "core/comm/watch.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <cstdlib>
#include <thread>

namespace hctr::test {
namespace {

using std::chrono::seconds;

/// Process 0 of two, to which the other one says `text`.
[[noreturn]] void watch_one_that_says(const std::string& text) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::_Exit(99);
  const TcpSocket other(ends[1]);
  std::vector<TcpSocket> control(2);
  control[1] = TcpSocket(ends[0]);
  const Watch watch(0, std::move(control), {"a", "b"}, seconds(60));
  other.send_text(text, TcpClock::now() + seconds(5));
  std::this_thread::sleep_for(seconds(30));
  std::_Exit(98);
}

TEST(Watch, EndsWithTheCodeOfAnErrorWhateverAnotherProcessSays) {
  const auto ends_with = [](Kind kind) { return testing::ExitedWithCode(exit_code(kind)); };
  EXPECT_EXIT(watch_one_that_says("abort 5"), ends_with(Kind::io), "");
  for (const char* text : {"abort 0", "abort x", "abort ", "abort 256"})
    EXPECT_EXIT(watch_one_that_says(text), ends_with(Kind::comm), "") << text;
}

TEST(Watch, SaysNothingThatATerminalObeys) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const TcpSocket other(ends[1]);
  std::vector<TcpSocket> control(2);
  control[1] = TcpSocket(ends[0]);
  const Watch watch(0, std::move(control), {"a", "b"}, seconds(60));
  other.send_text("failed \x1b[31mred", TcpClock::now() + seconds(5));
  const auto failure = watch.failure_soon();
  ASSERT_TRUE(failure);
  EXPECT_STREQ(failure->what(), "\\x1b[31mred");
}

}  // namespace
}  // namespace hctr::test
