// Processes that join over TCP, and the error of each process if one does not belong to the job. Threads act as
// processes.
#include "core/comm/tcp_join.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <thread>

#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/base/platform.h"
#include "core/comm/acceptor.h"
#include "core/comm/join_text.h"
#include "support/joined.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The arguments of one process, and the result of its join.
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

void join(std::vector<Process>& all, milliseconds limit = seconds(20), std::optional<seconds> lost = {}) {
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

std::vector<Process> with_secret(std::vector<Process> all) {
  for (Process& process : all) process.launch.secret = "known to all of these";
  return all;
}

/// Expects that each process can send a text to every other process, and that the text arrives.
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
  std::vector<Process> all = with_secret(processes(2));
  all[1].version = "2";
  join(all);
  expect_all_say(all, cat("process 1 on ", host_name(), " runs 2 and process 0 on ", host_name(), " runs 1"));
}

TEST(TcpJoin, WithoutASecretOnlyProcessZeroSaysItsVersionAndItsHost) {
  std::vector<Process> all = processes(2);
  all[1].version = "2";
  join(all);
  EXPECT_NE(all[0].error.find(cat("process 0 on ", host_name(), " runs 1: all")), std::string::npos) << all[0].error;
  EXPECT_NE(all[1].error.find("runs 2 and process 0 runs another version"), std::string::npos) << all[1].error;
  EXPECT_EQ(all[1].error.find("runs 1"), std::string::npos) << all[1].error;
}

TEST(TcpJoin, TheSecretMustBeTheSame) {
  std::vector<Process> all = with_secret(processes(4));
  join(all);
  for (const Process& process : all) ASSERT_EQ(process.error, "");
  expect_connected(all);
  const std::string secrets[] = {"", "one of these secrets", "the other of these"};
  for (const std::string& of_first : secrets)
    for (const std::string& of_second : secrets) {
      if (of_first == of_second) continue;
      SCOPED_TRACE(cat("\"", of_first, "\" and \"", of_second, "\""));
      all = processes(2);
      all[0].launch.secret = of_first;
      all[1].launch.secret = of_second;
      join(all, milliseconds(300));
      EXPECT_NE(all[1].error.find(of_second.empty() ? "the other process expects a secret"
                                                    : "the other process has a different "
                                                      "secret or none"),
                std::string::npos)
          << all[1].error;
      EXPECT_NE(all[0].error.find("process 1 has not reported"), std::string::npos) << all[0].error;
      EXPECT_NE(all[0].error.find("1 connection, from 127.0.0.1, was closed: its peer "), std::string::npos)
          << all[0].error;
      for (const Process& process : all)
        for (const std::string& secret : secrets)
          if (!secret.empty()) {
            EXPECT_EQ(process.error.find(secret), std::string::npos) << process.error;
          }
    }
}

TEST(TcpJoin, ConnectionsThatSayNothingDelayItByLessThanASecond) {
  for (const size_t silent : {3, 600}) {  // 600 exceeds the limit of open connections
    std::vector<Process> all = with_secret(processes(3)), first, others;
    const int port = all[0].launch.port;
    first.push_back(std::move(all[0]));
    for (const size_t p : {1, 2}) others.push_back(std::move(all[p]));
    std::thread host([&] { join(first); });
    std::vector<TcpSocket> strangers;
    for (size_t i = 0; i < silent; ++i)
      strangers.push_back(connect_to("127.0.0.1", port, "process 0", TcpClock::now() + seconds(20)));
    const auto begin = TcpClock::now();
    join(others);
    host.join();
    for (const Process* process : {&first[0], &others[0], &others[1]}) EXPECT_EQ(process->error, "");
    // joining takes less time than the timeout of a connection, 5 s
    EXPECT_LT(TcpClock::now() - begin, seconds(silent == 3 || kSanitized ? 4 : 2));
  }
}

TEST(TcpJoin, AFalseProcessZeroIsNotBelieved) {
  std::vector<Process> all = with_secret(processes(2));
  const TcpListener listener(all[0].launch.port, "127.0.0.1");
  all.erase(all.begin());
  std::thread guest([&] { join(all, milliseconds(500)); });
  const auto end = TcpClock::now() + seconds(5);
  // Behaves like a process that has no secret and accepts any answer.
  const TcpSocket socket = listener.accept(end);
  const Challenge challenge;
  socket.send_bytes(challenge.text(), end);
  std::array<char, kAnswerBytes> answer;
  socket.receive_bytes(answer, end);
  std::string verdict;
  EXPECT_FALSE(challenge.check({answer.data(), answer.size()}, {.secret = ""}, verdict));
  verdict[0] = '+';
  socket.send_bytes(verdict, end);
  char more = 0;
  EXPECT_THROW(socket.receive_bytes({&more, 1}, end), Error) << "it has said more to a stranger";
  guest.join();
  EXPECT_NE(all[0].error.find("the program that answered does not know the job's secret"), std::string::npos)
      << all[0].error;
}

TEST(TcpJoin, ATableWithoutLinesOrWithWrongOnesIsNotFollowed) {
  for (const char* table :
       {"members", "members\n", "member\n0 0 127.0.0.1 a", "members\n0 0 127.0.0.1 a", "members\n1 5 127.0.0.1 a",
        "members\n0 0 127.0.0.1 a\n7 5 127.0.0.1 b", "members\n0 0 127.0.0.1 a\n1 0 127.0.0.1 b",
        "members\n0 0 127.0.0.1\n1 5 127.0.0.1 b", "members\n0 0 127.0.0.1 a\n1 99999999999 127.0.0.1 b", ""}) {
    std::vector<Process> all = processes(2);
    const TcpListener listener(all[0].launch.port, "127.0.0.1");
    all.erase(all.begin());
    std::thread guest([&] { join(all, seconds(5)); });
    const auto end = TcpClock::now() + seconds(5);
    Acceptor acceptor(listener, {JobKey{}}, "dc");
    std::vector<TcpSocket> sockets;
    for (int i = 0; i < 2; ++i) {
      auto accepted = acceptor.next(end);
      ASSERT_TRUE(accepted);
      accepted->socket.send_text("welcome", end);
      sockets.push_back(std::move(accepted->socket));
    }
    sockets[0].send_text(text_of_secret(std::string(64, 'a')), end);
    sockets[0].send_text(table, end);
    guest.join();
    EXPECT_NE(all[0].error.find("the table of processes cannot be read: line "), std::string::npos) << all[0].error;
  }
}

TEST(TcpJoin, AnybodyElseIsWarnedOfOnceWhereThePortIsOpenAndThereIsNoSecret) {
  // 203.0.113.9 is reserved for documentation, so no interface has it. With this address, process 0 listens on all
  // interfaces.
  for (const char* address : {"127.0.0.1", "localhost", "203.0.113.9"})
    for (const bool has_secret : {false, true})
      for (const bool again : {false, true}) {
        SCOPED_TRACE(cat(address, has_secret, again));
        std::string lines;
        const Log log([&](Level level, std::string_view line) { lines += cat(level == Level::warning, line, "\n"); });
        std::vector<Process> all = processes(2);
        all[0].launch.address = address;
        if (has_secret) all[0].launch.secret = "sixteen of these";
        const auto now = TcpClock::now();
        const auto soon = now + milliseconds(20);
        if (again) {
          join_job(all[0].launch, "1", now + seconds(5), log, soon);
        } else {
          EXPECT_THROW(join_job(all[0].launch, "1", soon, log), Error);
        }
        const bool open = address[0] == '2';
        EXPECT_EQ(lines.find("1any process that reaches port ") != std::string::npos, open && !has_secret && !again)
            << lines;
        EXPECT_EQ(lines.find("on all interfaces (MASTER_ADDR=\"203.0.113.9\": no interface of this host has this "
                             "address)") != std::string::npos,
                  open)
            << lines;
      }
}

TEST(TcpJoin, OneThatComesLaterHearsAtOnceWhyTheJobCannotStart) {
  std::vector<Process> all = processes(3), late;
  late.push_back(std::move(all[2]));
  all.pop_back();
  all[1].version = "2";
  std::thread others([&] { join(all); });
  std::this_thread::sleep_for(milliseconds(300));  // by then process 0 has rejected process 1
  join(late, seconds(60));
  others.join();
  EXPECT_NE(late[0].error.find("process 1 on"), std::string::npos) << late[0].error;
  EXPECT_NE(late[0].error.find(" runs 2 and process 0"), std::string::npos) << late[0].error;
}

TEST(TcpJoin, NumbersThatDoNotFitAreNamed) {
  std::vector<Process> all = processes(2);
  all[1].launch.processes = 3;
  join(all, seconds(2));
  expect_all_say(all, "was started as one of 3, but process 0 as one of 2");
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
  expect_all_say(guest, "the host name is unknown");
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
  // Opens a connection that passes the handshake, as any program can if the job has no secret.
  const auto talker = [&](ConnectionKind kind) {
    TcpSocket socket = stranger();
    EXPECT_TRUE(prove_membership(socket, {}, kind, end));
    return socket;
  };
  const TcpSocket endless = talker(ConnectionKind::data);
  (void)!::write(endless.descriptor(), &huge, sizeof huge);
  for (const char* greeting :
       {"", "huge_ctr job 1", "process 1", "process x\nprocesses 2\nport 1\nhost a\nversion 1",
        "process 99999999999\nprocesses 2\nport 1\nhost a\nversion 1",
        "process 1\nprocesses 2\nport 1\nhost a b\nversion 1", "process 1\nprocesses 2\nport 70000\nhost a\nversion 1",
        "process 1\nprocess 1\nprocesses 2\nport 1\nhost a\nversion 1"})
    talker(ConnectionKind::data).send_text(greeting, end);
  // Process 0 does not accept peer connections.
  talker(ConnectionKind::peer).send_text(text_of(Greeting{1, 2, 5, "a", "1"}), end);
  other[0].launch.job = "another job";
  join(other, seconds(1));
  EXPECT_NE(other[0].error.find("belongs to another job"), std::string::npos) << other[0].error;
  join(second);
  host.join();
  EXPECT_EQ(first[0].error, "");
  EXPECT_EQ(second[0].error, "");
}

}  // namespace
}  // namespace hctr::test
