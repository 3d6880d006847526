// The secret that processes agree on at their first join if none is configured. Tests which processes have the secret
// at the next join, and how processes without the secret fail. Threads act as processes.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <list>
#include <new>
#include <thread>

#include "core/base/expect.h"
#include "core/comm/handshake.h"
#include "core/comm/job_secret.h"
#include "core/comm/join_text.h"
#include "core/comm/tcp_join.h"
#include "support/joined.h"

namespace hctr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// State that a process keeps across restarts, and the result of its last join.
struct Kept {
  int process = 0;
  AgreedSecret secret = {};
  std::string error = {};
  JobConnections job = {};
};

class AgreedSecrets : public testing::Test {
 protected:
  explicit AgreedSecrets(int count = 3) {
    for (int p = 0; p < count; ++p) kept_.emplace_back().process = p;
  }
  Launch launch(int process) const {
    return {.launcher = "a test",
            .process = process,
            .processes = static_cast<int>(kept_.size()),
            .address = "127.0.0.1",
            .port = port_};
  }
  /// `lost`: time after a restart until missing processes count as lost.
  void join(const std::vector<Kept*>& all, std::optional<milliseconds> lost = {}) {
    std::vector<std::thread> threads;
    const auto now = TcpClock::now();
    lines_.clear();
    for (Kept* each : all)
      threads.emplace_back([&, each] {
        const Log log([&](Level, std::string_view line) { lines_ += cat(line, "\n"); });  // log of process 0
        each->error.clear();
        try {
          each->job = join_job(launch(each->process), "1", now + seconds(20), log,
                               lost ? std::optional(now + *lost) : std::nullopt, &each->secret);
        } catch (const Error& error) {
          each->error = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  Kept& at(int process) { return *std::next(kept_.begin(), process); }
  std::vector<Kept*> all() {
    std::vector<Kept*> pointers;
    for (Kept& each : kept_) pointers.push_back(&each);
    return pointers;
  }
  void expect_joined(const std::vector<Kept*>& joined) {
    for (const Kept* each : joined) {
      EXPECT_EQ(each->error, "") << each->process;
      EXPECT_EQ(each->job.data.size(), joined.size());
      EXPECT_EQ(each->secret.text(), at(0).secret.text()) << each->process;
    }
    EXPECT_EQ(at(0).secret.text().size(), AgreedSecret::kCharacters);
    EXPECT_TRUE(at(0).secret.known_to_all());
  }
  /// Sends the greeting, but does not answer the first message from process 0, like a process that is killed at that
  /// point.
  TcpSocket connect_without_answering(int process, ConnectionKind kind) {
    const auto end = TcpClock::now() + seconds(10);
    TcpSocket socket = connect_as_member({"127.0.0.1", port_, "process 0"}, {}, kind, end, seconds(5));
    socket.send_text(text_of(Greeting{process, static_cast<int>(kept_.size()), 1, "a", "1"}), end);
    socket.receive_text(100, end);
    return socket;
  }

  int port_ = free_port();
  std::list<Kept> kept_;
  std::string lines_;
};

TEST_F(AgreedSecrets, AreMadeAtTheFirstJoinAndAskedForLater) {
  join(all());
  expect_joined(all());
  const std::string made = at(0).secret.text();
  join(all(), seconds(10));
  expect_joined(all());
  EXPECT_EQ(at(0).secret.text(), made);
  EXPECT_EQ(lines_.find(made), std::string::npos);
}

TEST_F(AgreedSecrets, KeepAPlaceFromAStrangerUntilItsOwnerIsBack) {
  join(all());
  Kept stranger{.process = 2};
  std::thread others([&] { join({&at(0), &at(1)}, seconds(1)); });
  try {
    join_job(launch(2), "1", TcpClock::now() + seconds(10), Log::silent(), {}, &stranger.secret);
    ADD_FAILURE() << "it has joined";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the other process expects a secret"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("set HCTR_JOB_SECRET or HCTR_JOB_SECRET_FILE for all processes"),
              std::string::npos)
        << error.what();
  }
  others.join();
  // The other processes continue without the lost process, and log the reason.
  expect_joined({&at(0), &at(1)});
  EXPECT_NE(lines_.find("process 2 has not returned in time after the restart"), std::string::npos) << lines_;
  EXPECT_NE(lines_.find("from 127.0.0.1, was closed: its peer runs another program, belongs to another job, or was "
                        "restarted and does not know the secret that the processes created when they first joined"),
            std::string::npos)
      << lines_;
  EXPECT_NE(lines_.find("set HCTR_JOB_SECRET or HCTR_JOB_SECRET_FILE on all hosts"), std::string::npos) << lines_;
  EXPECT_EQ(stranger.secret.text(), "");
  join(all(), seconds(10));  // the lost process returns at the next restart
  expect_joined(all());
}

TEST_F(AgreedSecrets, AreNotAskedForUntilAllHaveSaidThatTheyKeepThem) {
  // Process 2 dies before it confirms the secret. The other processes may or may not have the secret.
  std::thread others([&] { join({&at(0), &at(1)}); });
  {
    const TcpSocket data = connect_without_answering(2, ConnectionKind::data);
    const TcpSocket control = connect_without_answering(2, ConnectionKind::control);
    EXPECT_TRUE(secret_from(data.receive_text(100, TcpClock::now() + seconds(10))));
  }
  others.join();
  EXPECT_NE(at(0).error.find("waiting for the answer of process 2 on a"), std::string::npos) << at(0).error;
  EXPECT_NE(at(1).error, "");
  EXPECT_NE(at(0).secret.text(), "");
  EXPECT_FALSE(at(0).secret.known_to_all());
  EXPECT_EQ(at(1).secret.text(), at(0).secret.text());
  join(all(), seconds(10));
  expect_joined(all());
}

TEST_F(AgreedSecrets, OfAProcessZeroThatWasStartedAnewAreUnknown) {
  join(all());
  Kept anew{.process = 0};
  std::thread zero([&] {
    EXPECT_THROW(join_job(launch(0), "1", TcpClock::now() + seconds(1), Log::silent(), {}, &anew.secret), Error);
  });
  join({&at(1), &at(2)}, seconds(1));
  zero.join();
  for (const int p : {1, 2})
    EXPECT_NE(at(p).error.find("the other process does not know the secret that the processes created when they "
                               "first joined"),
              std::string::npos)
        << at(p).error;
}

TEST_F(AgreedSecrets, StayInMemoryThatAProcessSharesWithTheOneThatStartsItAgain) {
  void* memory = ::mmap(nullptr, sizeof(AgreedSecret), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) AgreedSecret;
  EXPECT_EQ(shared->text(), "");
  const pid_t child = ::fork();
  if (child == 0) {
    shared->set(std::string(AgreedSecret::kCharacters, 'a'));
    shared->set_known_to_all();
    ::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(shared->text(), std::string(AgreedSecret::kCharacters, 'a'));
  EXPECT_TRUE(shared->known_to_all());
  ::munmap(memory, sizeof(AgreedSecret));
}

}  // namespace
}  // namespace hctr::test
