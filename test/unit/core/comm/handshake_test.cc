// Messages that prove the membership of a process in the job.
#include "core/comm/handshake.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>

#include "core/base/expect.h"
#include "core/comm/acceptor.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

using std::chrono::seconds;

constexpr ConnectionKind kKinds[] = {ConnectionKind::data, ConnectionKind::control, ConnectionKind::peer,
                                     ConnectionKind::watch};

/// The messages of a handshake between two processes that know `key`.
struct Recorded {
  Challenge challenge;
  std::string answer, verdict;
};
Recorded handshake(const JobKey& key, ConnectionKind kind) {
  Recorded recorded;
  const TcpListener listener(0, "127.0.0.1");
  const auto end = TcpClock::now() + seconds(10);
  std::thread other([&] {
    EXPECT_TRUE(prove_membership(connect_to("127.0.0.1", listener.port(), "somebody", end), key, kind, end));
  });
  const TcpSocket socket = listener.accept(end);
  socket.send_bytes(recorded.challenge.text(), end);
  std::array<char, kAnswerBytes> answer;
  socket.receive_bytes(answer, end);
  recorded.answer.assign(answer.data(), answer.size());
  EXPECT_EQ(recorded.challenge.check(recorded.answer, key, recorded.verdict), kind);
  socket.send_bytes(recorded.verdict, end);
  other.join();
  return recorded;
}

TEST(Handshake, AnAnswerIsGoodForOneChallengeOneKindOneJobAndOneSecret) {
  const JobKey key{"a secret that all know", "job 7"};
  std::string verdict;
  for (const ConnectionKind kind : kKinds) {
    const Recorded recorded = handshake(key, kind);
    EXPECT_EQ(recorded.verdict.size(), kVerdictBytes);
    for (const JobKey& other : {JobKey{"a secret that all knew", key.job}, JobKey{"", key.job},
                                JobKey{key.secret, "job 8"}, JobKey{key.secret, ""}}) {
      EXPECT_FALSE(recorded.challenge.check(recorded.answer, other, verdict));
      EXPECT_EQ(verdict, "-" + std::string(kVerdictBytes - 1, '\0')) << "it says something to a stranger";
    }
    EXPECT_FALSE(Challenge().check(recorded.answer, key, verdict)) << "an old answer";
    for (const ConnectionKind other : kKinds) {
      std::string changed = recorded.answer;
      changed[0] = static_cast<char>(other);
      EXPECT_EQ(recorded.challenge.check(changed, key, verdict).has_value(), other == kind);
    }
    for (size_t byte = 1; byte < recorded.answer.size(); ++byte) {
      std::string changed = recorded.answer;
      changed[byte] = static_cast<char>(changed[byte] ^ 1);
      EXPECT_FALSE(recorded.challenge.check(changed, key, verdict)) << byte;
    }
    EXPECT_FALSE(recorded.challenge.check(recorded.answer.substr(1), key, verdict));
    EXPECT_FALSE(recorded.challenge.check("", key, verdict));
    EXPECT_NE(recorded.answer.substr(1 + 32), recorded.verdict.substr(1)) << "one side's code serves the other";
  }
}

TEST(Handshake, NothingIsSaidTwice) {
  std::set<std::string> challenges;
  for (int i = 0; i < 100; ++i) challenges.insert(Challenge().text());
  EXPECT_EQ(challenges.size(), 100u);
  const JobKey key{"a secret that all know"};
  EXPECT_NE(handshake(key, ConnectionKind::data).answer, handshake(key, ConnectionKind::data).answer);
}

TEST(Handshake, AnAnswerThatIsSentBackProvesNothing) {
  // A process without the secret sends each message of the peer back to the peer.
  const JobKey key{"a secret that all know"};
  const TcpListener listener(0, "127.0.0.1");
  const auto end = TcpClock::now() + seconds(10);
  std::string why;
  std::thread other([&] {
    const TcpSocket socket = connect_to("127.0.0.1", listener.port(), "somebody", end);
    why = message_of(Kind::comm, [&] { prove_membership(socket, key, ConnectionKind::data, end); });
  });
  const TcpSocket socket = listener.accept(end);
  socket.send_bytes(Challenge().text(), end);
  std::array<char, kAnswerBytes> answer;
  socket.receive_bytes(answer, end);
  socket.send_bytes("+" + std::string(answer.data() + 1 + 32, 32), end);
  other.join();
  EXPECT_NE(why.find("does not know the job's secret"), std::string::npos) << why;
}

TEST(Handshake, AnotherProgramThatAnswersIsNamedByItsPlace) {
  const TcpListener listener(0, "127.0.0.1");
  std::thread http([&] {
    const auto end = TcpClock::now() + seconds(5);
    for (;;) {
      const TcpSocket socket = listener.accept(TcpClock::now() + std::chrono::milliseconds(400));
      if (!socket.connected()) return;
      try {
        socket.send_bytes("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", end);
      } catch (const Error&) {
      }
    }
  });
  const std::string why = message_of(Kind::comm, [&] {
    connect_as_member({"127.0.0.1", listener.port(), "process 0"}, {}, ConnectionKind::data,
                      TcpClock::now() + std::chrono::milliseconds(200), seconds(1));
  });
  http.join();
  EXPECT_NE(why.find(cat("cannot join process 0 at 127.0.0.1, port ", listener.port(), ": another program")),
            std::string::npos)
      << why;
}

TEST(Acceptor, CountsThoseWhoDoNotKnowTheSecretAndReadsNothingBehindTheGreeting) {
  const JobKey key{"a secret that all know"};
  const TcpListener listener(0, "127.0.0.1");
  const auto end = TcpClock::now() + seconds(10);
  Acceptor acceptor(listener, {key}, "d");
  bool refused = true;
  std::thread others([&] {
    const auto connect = [&] { return connect_to("127.0.0.1", listener.port(), "somebody", end); };
    refused = !prove_membership(connect(), {"a different secret"}, ConnectionKind::data, end);
    TcpSocket socket = connect();
    EXPECT_TRUE(prove_membership(socket, key, ConnectionKind::data, end));
    socket.send_text("a greeting", end);
    socket.send_text("what follows", end);
    char byte = 0;
    EXPECT_THROW(socket.receive_bytes({&byte, 1}, end), Error);
  });
  {
    const auto accepted = acceptor.next(end);
    ASSERT_TRUE(accepted);
    EXPECT_EQ(accepted->greeting, "a greeting");
    EXPECT_EQ(accepted->socket.receive_text(100, end), "what follows");
  }
  others.join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(acceptor.refused(), 1);
  EXPECT_EQ(acceptor.first_refused(), "127.0.0.1");
  EXPECT_FALSE(acceptor.next(TcpClock::now()));
}

TEST(TcpListener, ListensAtTheInterfaceOfItsAddress) {
  const auto connects = [](const std::string& address, int port) {
    try {
      connect_to(address, port, "somebody", TcpClock::now());
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const TcpListener one(0, "127.0.0.5");
  EXPECT_FALSE(one.at_all_interfaces());
  EXPECT_TRUE(connects("127.0.0.5", one.port()));
  EXPECT_FALSE(connects("127.0.0.1", one.port()));
  const TcpListener of_name(0, "localhost");
  EXPECT_FALSE(of_name.at_all_interfaces());
  EXPECT_EQ(of_name.all_because(), "");
  const TcpListener all(0);
  EXPECT_TRUE(all.at_all_interfaces() && all.all_because().empty());
  EXPECT_TRUE(connects("127.0.0.1", all.port()) && connects("127.0.0.5", all.port()));
  const TcpListener of_nobody(0, "203.0.113.9"), unknown(0, "no-such-host.invalid");
  EXPECT_EQ(of_nobody.all_because(), "no interface of this host has this address");
  EXPECT_NE(unknown.all_because().find("the host name is unknown"), std::string::npos);
  EXPECT_TRUE(connects("127.0.0.1", of_nobody.port()) && connects("127.0.0.1", unknown.port()));
}

}  // namespace
}  // namespace hctr::test
