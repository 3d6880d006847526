// Processes joined by MPI connect their watchdogs. Threads act as processes.
#include "core/comm/watch_join.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <regex>
#include <thread>

#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/comm/tcp_listener.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

/// The result of connect_watches() for each of `count` processes.
std::vector<WatchConnections> connect_all(int count, const std::optional<std::string>& address, seconds limit) {
  std::vector<const void*> given(static_cast<size_t>(count));
  std::barrier meet(count);
  std::vector<WatchConnections> connections(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int p = 0; p < count; ++p)
    threads.emplace_back([&, p] {
      const auto gather = [&](const void* mine, int32_t bytes, void* of_each) {
        given[static_cast<size_t>(p)] = mine;
        meet.arrive_and_wait();
        for (size_t from = 0; from < given.size(); ++from)
          std::memcpy(static_cast<char*>(of_each) + from * static_cast<size_t>(bytes), given[from],
                      static_cast<size_t>(bytes));
        meet.arrive_and_wait();
      };
      connections[static_cast<size_t>(p)] = connect_watches(p, count, address, limit, gather);
    });
  for (std::thread& thread : threads) thread.join();
  return connections;
}

TEST(WatchJoin, ProcessZeroIsConnectedWithEachOther) {
  const std::vector<WatchConnections> all = connect_all(5, {}, seconds(20));
  const auto end = TcpClock::now() + seconds(5);
  ASSERT_EQ(all[0].control.size(), 5u);
  EXPECT_FALSE(all[0].control[0].connected());
  for (size_t p = 0; p < 5; ++p) {
    EXPECT_EQ(all[p].hosts, std::vector<std::string>(5, host_name()));
    EXPECT_EQ(all[p].missing, "");
    if (p == 0) continue;
    all[p].control.at(0).send_text(cat("from ", p), end);
    EXPECT_EQ(all[0].control[p].receive_text(100, end), cat("from ", p));
  }
}

TEST(WatchJoin, AllKnowWhoCannotConnectFromWhereToWhere) {
  // 192.0.2.1 is reserved for documentation, so no host has it.
  for (const WatchConnections& each : connect_all(3, "192.0.2.1", seconds(1))) {
    for (const TcpSocket& socket : each.control) EXPECT_FALSE(socket.connected());
    EXPECT_TRUE(std::regex_match(
        each.missing, std::regex(cat("processes 1, 2: ", host_name(), " cannot connect to process 0 on ", host_name(),
                                     R"(, port [0-9]+ \(192\.0\.2\.1: .+\))"))))
        << each.missing;
  }
}

TEST(ConnectToAny, TakesTheAddressThatAnswersAsItShould) {
  const TcpListener listener(0);
  const auto connect = [&](bool suits) {
    return connect_to_any({"192.0.2.1", "127.0.0.1"}, listener.port(), "somebody", TcpClock::now() + seconds(1),
                          [&](const TcpSocket&) { return suits; });
  };
  EXPECT_EQ(connect(true).peer_address(), "127.0.0.1");
  const std::string refused = message_of(Kind::comm, [&] { connect(false); });
  EXPECT_NE(refused.find(cat(host_name(), " cannot connect to somebody, port ", listener.port(), " (192.0.2.1: ")),
            std::string::npos)
      << refused;
  EXPECT_NE(refused.find(", 127.0.0.1: another program answers)"), std::string::npos) << refused;
}

}  // namespace
}  // namespace hctr::test
