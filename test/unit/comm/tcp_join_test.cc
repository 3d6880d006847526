// Processes that join over TCP, here as threads of one: who is told what when one of them does not belong to the
// others.
#include "comm/tcp_join.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "base/host_name.h"
#include "support/joined.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

/// One process: how it is started, and what came of it.
struct Process {
  Launch launch;
  std::string version = "1";
  std::string error = {};
  JobConnections job = {};
};

std::vector<Process> processes(int count) {
  std::vector<Process> all;
  const int port = free_port();
  for (int p = 0; p < count; ++p)
    all.push_back(
        {Launch{.launcher = "a test", .process = p, .processes = count, .address = "127.0.0.1", .port = port}});
  return all;
}

void join(std::vector<Process>& all, seconds limit = seconds(20), std::optional<seconds> lost = {}) {
  std::vector<std::thread> threads;
  for (Process& process : all)
    threads.emplace_back([&process, limit, lost] {
      try {
        const auto now = TcpClock::now();
        process.job = join_job(process.launch, process.version, now + limit, Log::silent(),
                               lost ? std::optional(now + *lost) : std::nullopt);
      } catch (const Error& error) {
        process.error = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// Each sends each of the others a word and receives theirs.
void expect_connected(const std::vector<Process>& all) {
  const auto end = TcpClock::now() + seconds(5);
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < all.size(); ++b)
      if (a != b) all[a].job.data[b].send_text(cat(a, " to ", b), end);
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < all.size(); ++b)
      if (a != b) {
        EXPECT_EQ(all[b].job.data[a].receive_text(100, end), cat(a, " to ", b));
      }
}

void expect_all_say(const std::vector<Process>& all, const std::string& words) {
  for (const Process& process : all)
    EXPECT_NE(process.error.find(words), std::string::npos) << process.launch.process << ": " << process.error;
}

TEST(TcpJoin, EachIsConnectedWithEach) {
  std::vector<Process> all = processes(4);
  join(all);
  for (const Process& process : all) {
    ASSERT_EQ(process.error, "");
    EXPECT_EQ(process.job.hosts, std::vector<std::string>(4, host_name()));
  }
  expect_connected(all);
}

TEST(TcpJoin, AfterARestartTheOthersGoOnWithoutThoseThatAreLost) {
  std::vector<Process> all = processes(5);
  all.erase(all.begin() + 3);
  all.erase(all.begin() + 1);
  join(all, seconds(20), seconds(1));
  for (size_t p = 0; p < 3; ++p) {
    ASSERT_EQ(all[p].error, "");
    EXPECT_EQ(all[p].job.process, static_cast<int>(p));
    EXPECT_EQ(all[p].job.hosts, std::vector<std::string>(3, host_name()));
  }
  expect_connected(all);
  std::vector<Process> alone = processes(2);
  alone.pop_back();
  join(alone, seconds(20), seconds(1));
  EXPECT_EQ(alone[0].error, "");
  EXPECT_EQ(alone[0].job.data.size(), 1u);
}

TEST(TcpJoin, AnotherVersionIsNamedWithItsHost) {
  std::vector<Process> all = processes(2);
  all[1].version = "2";
  join(all);
  expect_all_say(all, cat("process 1 on ", host_name(), " runs 2 and process 0 on ", host_name(), " runs 1"));
}

TEST(TcpJoin, OneThatComesLaterHearsAtOnceWhyTheJobCannotStart) {
  std::vector<Process> all = processes(3), late;
  late.push_back(std::move(all[2]));
  all.pop_back();
  all[1].version = "2";
  std::thread others([&] { join(all); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // process 0 has refused process 1 by then
  join(late, seconds(60));
  others.join();
  EXPECT_NE(late[0].error.find("process 1 on"), std::string::npos) << late[0].error;
  EXPECT_NE(late[0].error.find(" runs 2 and process 0"), std::string::npos) << late[0].error;
}

TEST(TcpJoin, NumbersThatDoNotFitAreNamed) {
  std::vector<Process> all = processes(2);
  all[1].launch.processes = 3;
  join(all, seconds(2));
  expect_all_say(all, "was started as one of 3 and process 0 as one of 2");
  all = processes(3);
  all[2].launch.process = 1;
  join(all, seconds(2));
  EXPECT_NE(all[0].error.find("process 1 on"), std::string::npos);
  EXPECT_NE(all[0].error.find("was started twice"), std::string::npos) << all[0].error;
}

TEST(TcpJoin, ThoseWhoDoNotComeAreNamed) {
  std::vector<Process> all = processes(4);
  all.erase(all.begin() + 2);
  join(all, seconds(1));
  expect_all_say(all, cat("process 2 has not reported to process 0 on ", host_name(), ", port ", all[0].launch.port));
  std::vector<Process> guest = processes(2);
  guest.erase(guest.begin());
  join(guest, seconds(1));
  expect_all_say(guest, cat(host_name(), " cannot connect to process 0 at 127.0.0.1, port ", guest[0].launch.port,
                            ": Connection refused (tried for 1 s)"));
  guest[0].launch.address = "no-such-host.invalid";
  join(guest, seconds(1));
  expect_all_say(guest, "the name is not known");
}

TEST(TcpJoin, APortThatIsTakenIsNamed) {
  std::vector<Process> all = processes(2);
  const TcpListener taken(all[0].launch.port);
  all.pop_back();
  join(all);
  expect_all_say(all, "Address already in use; another MASTER_PORT may be free");
}

TEST(TcpJoin, StrangersAreSentAway) {
  std::vector<Process> first = processes(1), second = processes(1), other = processes(1);
  const int port = first[0].launch.port;
  first[0].launch.processes = second[0].launch.processes = other[0].launch.processes = 2;
  second[0].launch.process = other[0].launch.process = 1;
  second[0].launch.port = other[0].launch.port = port;
  std::thread host([&] { join(first); });
  const auto end = TcpClock::now() + seconds(10);
  const auto stranger = [&] { return connect_to("127.0.0.1", port, "process 0", end); };
  stranger().send_text("GET / HTTP/1.0", end);
  const uint64_t huge = UINT64_MAX;
  (void)!::write(stranger().descriptor(), &huge, sizeof huge);
  other[0].launch.job = "another job";
  join(other, seconds(1));
  EXPECT_NE(other[0].error, "");
  join(second);
  host.join();
  EXPECT_EQ(first[0].error, "");
  EXPECT_EQ(second[0].error, "");
}

}  // namespace
}  // namespace hctr::test
