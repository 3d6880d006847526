#include "core/comm/handshake.h"

#include <algorithm>
#include <array>
#include <thread>

#include "core/base/expect.h"
#include "core/base/host_name.h"

namespace hctr {
namespace {

// the digit is the version of the protocol, including the texts of core/comm/join_text.h
constexpr std::string_view kProtocol = "HCTRJOB3";
constexpr char kAccepted = '+', kRefused = '-';
constexpr size_t kNonceBytes = 32;

enum class Side : char { connecting = '>', accepting = '<' };

/// The HMAC by which one side proves that it knows the secret. A variable-length field is preceded by its size.
Digest proof_of(const JobKey& key, Side side, ConnectionKind kind, std::string_view nonce_of_accepting,
                std::string_view nonce_of_connecting) {
  std::string text(kProtocol);
  text += static_cast<char>(side);
  text += static_cast<char>(kind);
  text += cat(key.job.size(), ":", key.job);
  text += nonce_of_accepting;
  text += nonce_of_connecting;
  return hmac_sha256(key.secret, text);
}

}  // namespace

Challenge::Challenge() : nonce_(unpredictable_bytes()) {}

std::string Challenge::text() const { return cat(kProtocol, view_of(nonce_)); }

std::optional<ConnectionKind> Challenge::check(std::string_view answer, const JobKey& key, std::string& verdict) const {
  verdict = cat(kRefused, std::string(kVerdictBytes - 1, '\0'));
  if (answer.size() != kAnswerBytes) return std::nullopt;
  const auto kind = static_cast<ConnectionKind>(answer[0]);
  const std::string_view nonce = answer.substr(1, kNonceBytes), proof = answer.substr(1 + kNonceBytes);
  if (!equal_in_constant_time(proof, view_of(proof_of(key, Side::connecting, kind, view_of(nonce_), nonce))))
    return std::nullopt;
  verdict = cat(kAccepted, view_of(proof_of(key, Side::accepting, kind, view_of(nonce_), nonce)));
  return kind;
}

std::string answer_to(std::string_view challenge, const JobKey& key, ConnectionKind kind, const Digest& nonce) {
  const std::string_view theirs = challenge.substr(kProtocol.size());
  const Digest proof = proof_of(key, Side::connecting, kind, theirs, view_of(nonce));
  return cat(std::string(1, static_cast<char>(kind)), view_of(nonce), view_of(proof));
}

bool prove_membership(const TcpSocket& socket, const JobKey& key, ConnectionKind kind, TcpClock::time_point end) {
  std::array<char, kChallengeBytes> challenge;
  socket.receive_bytes(challenge, end);
  const std::string_view text(challenge.data(), challenge.size());
  if (!text.starts_with(kProtocol))
    throw Error(Kind::comm, "another program, or another version of this program, answered");
  const std::string_view theirs = text.substr(kProtocol.size());
  const Digest mine = unpredictable_bytes();
  socket.send_bytes(answer_to(text, key, kind, mine), end);
  std::array<char, kVerdictBytes> verdict;
  socket.receive_bytes(verdict, end);
  if (verdict[0] != kAccepted) return false;
  const std::string_view proof(verdict.data() + 1, verdict.size() - 1);
  if (!equal_in_constant_time(proof, view_of(proof_of(key, Side::accepting, kind, theirs, view_of(mine)))))
    throw Error(Kind::comm, "the program that answered does not know the job's secret");
  return true;
}

TcpSocket connect_as_member(const MemberAddress& at, const JobKey& key, ConnectionKind kind, TcpClock::time_point end,
                            std::chrono::seconds limit) {
  const auto place = [&] {
    return cat(host_name(), " cannot join ", at.name, " at ", at.host, ", port ", at.port, ": ");
  };
  std::string why;
  for (;;) {
    TcpSocket socket = connect_to(at.host, at.port, at.name, end);
    bool accepted = false;
    try {
      accepted = prove_membership(socket, key, kind, std::min(end, TcpClock::now() + limit));
    } catch (const Error& error) {
      const bool over = TcpClock::now() >= end;
      // Keep the error of an earlier attempt, if there is one. The last attempt was cut short, so its error is less
      // useful.
      if (!over || why.empty()) why = error.what();
      if (over) throw Error(Kind::comm, place() + why);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    if (accepted) return socket;
    throw Error(
        Kind::comm,
        cat(place(), key.secret.empty() ? "the other process expects a secret, or belongs to another job; set "
                                          "HCTR_JOB_SECRET or HCTR_JOB_SECRET_FILE for all processes: otherwise "
                                          "the processes create a secret when they first join, which a restarted "
                                          "process does not know"
                     : key.made
                         ? "the other process does not know the secret that the processes created when they first "
                           "joined: it was restarted, or belongs to another job; set HCTR_JOB_SECRET or "
                           "HCTR_JOB_SECRET_FILE, the same for all processes, so that restarted processes can join"
                         : "the other process has a different secret or none, or belongs to another job; "
                           "HCTR_JOB_SECRET must be the same for all processes"));
  }
}

}  // namespace hctr
