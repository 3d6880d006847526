// Fuzz entry: the states of an Acceptor with several concurrent connections.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "core/comm/acceptor.h"
#include "core/comm/join_text.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {
namespace {

const JobKey kKeyOfJob{"the secret of the job", "job"};
constexpr const char* kKinds = "dc";

/// The peer of a connection. The fuzzer's bytes script its actions.
struct Stranger {
  TcpSocket socket{};
  std::string challenge{}, sent{};  // challenge: received bytes; sent: sent bytes
  bool proved = false;              // whether the first bytes were a valid response of an expected kind

  void connect(int port) {
    socket = TcpSocket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    expect(::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const linger at_once{1, 0};  // closes with RST, so no connection stays in TIME_WAIT
    ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  void send(const std::string& bytes) {
    const ssize_t count = ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) sent += bytes.substr(0, static_cast<size_t>(count));
  }
  void receive_challenge() {
    std::array<char, kChallengeBytes> bytes;
    const ssize_t count = ::recv(socket.descriptor(), bytes.data(), bytes.size() - challenge.size(), MSG_DONTWAIT);
    if (count > 0) challenge.append(bytes.data(), static_cast<size_t>(count));
  }
  void answer(uint8_t kind) {
    receive_challenge();
    if (challenge.size() != kChallengeBytes) return;
    Digest nonce{};
    const auto of = static_cast<ConnectionKind>(kind);
    const bool first = sent.empty();
    send(answer_to(challenge, kKeyOfJob, of, nonce));
    proved |= first && std::string_view(kKinds).find(static_cast<char>(kind)) != std::string_view::npos;
  }
};

/// An accepted text must come from a peer that has proved its membership, and must equal the text that the peer sent.
void expect_member(const Accepted& accepted, std::span<const Stranger> strangers) {
  expect(accepted.greeting.size() <= kMostGreeting);
  const bool belongs = std::any_of(strangers.begin(), strangers.end(), [&](const Stranger& each) {
    return each.proved && each.sent.size() >= kAnswerBytes + 8 + accepted.greeting.size() &&
           each.sent.compare(kAnswerBytes + 8, accepted.greeting.size(), accepted.greeting) == 0 &&
           each.sent[0] == static_cast<char>(accepted.kind);
  });
  expect(belongs);
}

}  // namespace

void join_acceptor(Bytes script) {
  static const TcpListener listener(0, "127.0.0.1");
  Acceptor acceptor(listener, {kKeyOfJob}, kKinds);
  std::array<Stranger, 3> strangers;
  std::vector<Stranger> gone;
  const auto poll = [&] {
    while (const auto accepted = acceptor.next(TcpClock::now())) {
      std::vector<Stranger> all = {};
      for (auto* each : {&strangers[0], &strangers[1], &strangers[2]})
        if (each->proved) all.push_back({.challenge = {}, .sent = each->sent, .proved = true});
      for (const Stranger& each : gone) all.push_back({.challenge = {}, .sent = each.sent, .proved = each.proved});
      expect_member(*accepted, all);
    }
  };
  for (int steps = 0; !script.empty() && steps < 64; ++steps) {
    const uint8_t op = take(script);
    Stranger& of = strangers[op % strangers.size()];
    if (!of.socket.connected()) of.connect(listener.port());
    switch (op / 4 % 6) {
      case 0: {
        const size_t wanted = take(script), count = std::min(wanted, script.size());
        of.send({reinterpret_cast<const char*>(script.data()), count});
        script = script.subspan(count);
        break;
      }
      case 1:
        of.answer(take(script));
        break;
      case 2:
        of.answer(kKinds[op / 32 % 2]);
        break;
      case 3: {
        const uint64_t size = take(script);
        of.send(std::string(reinterpret_cast<const char*>(&size), sizeof size));
        break;
      }
      case 4:
        gone.push_back({.challenge = {}, .sent = std::move(of.sent), .proved = of.proved});
        of = {};
        break;
      default:
        ::shutdown(of.socket.descriptor(), SHUT_WR);
    }
    poll();
  }
}

}  // namespace hctr::fuzz
