// A process that ends because of a message from another process.
#include "core/comm/watch.h"
#include "program/program_surroundings.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

namespace hctr::test {
namespace {

using std::chrono::seconds;

/// Runs process 0 of two. Process 1 sends `text`.
[[noreturn]] void watch_one_that_says(const std::string& text) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::_Exit(99);
  const TcpSocket other(ends[1]);
  std::vector<TcpSocket> control(2);
  control[1] = TcpSocket(ends[0]);
  const Watch watch(0, std::move(control), {"a", "b"}, seconds(60), program_surroundings());
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
  const Watch watch(0, std::move(control), {"a", "b"}, seconds(60), {});
  other.send_text("failed \x1b[31mred", TcpClock::now() + seconds(5));
  const auto failure = watch.failure_soon();
  ASSERT_TRUE(failure);
  EXPECT_STREQ(failure->what(), "\\x1b[31mred");
}

/// Runs process 1 of two. The test controls process 0.
struct WatchedPeer {
  explicit WatchedPeer(const Surroundings& around) {
    int ends[2] = {-1, -1};
    HCTR_EXPECT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    other.emplace(ends[1]);
    std::vector<TcpSocket> control(1);
    control[0] = TcpSocket(ends[0]);
    watch.emplace(1, std::move(control), std::vector<std::string>{"a", "b"}, seconds(60), around);
  }
  std::optional<TcpSocket> other;
  std::optional<Watch> watch;
};

TEST(Watch, CallsBackForALostPeerAndTheProcessLives) {
  std::atomic<int> calls = 0;
  std::string said;
  Surroundings around;
  around.on_lost_peer = [&](const Error& error) {
    said = error.what();
    ++calls;
  };
  WatchedPeer peer(around);
  peer.other.reset();
  const auto failure = peer.watch->failure_soon();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind(), Kind::comm);
  for (int tries = 0; calls == 0 && tries < 500; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  peer.watch.reset();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(said, failure->what());
  EXPECT_NE(said.find("process 0 on a ended before the other processes"), std::string::npos) << said;
}

TEST(Watch, AnswersWhoIsToldToEndWithAnErrorWhereNothingEndsTheProcess) {
  WatchedPeer peer({});
  peer.other->send_text("abort 4", TcpClock::now() + seconds(5));
  const auto failure = peer.watch->failure_soon();
  ASSERT_TRUE(failure);
  EXPECT_STREQ(failure->what(),
               "process 0 on a ended the other processes: the log of that process states the "
               "reason");
}

TEST(Watch, EndsTheProcessByTheCallbackAlone) {
  std::atomic<int> code = 0;
  Surroundings around;
  around.end_process = [&](int exit_code) { code = exit_code; };
  WatchedPeer peer(around);
  peer.other->send_text("abort 4", TcpClock::now() + seconds(5));
  EXPECT_TRUE(peer.watch->failure_soon());
  EXPECT_EQ(code, 4);
}

}  // namespace
}  // namespace hctr::test
