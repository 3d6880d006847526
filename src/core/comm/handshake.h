// The first messages on a connection: each process proves that it knows the job's secret without sending the secret.
// The accepting process sends 32 random bytes. The connecting process replies with its own 32 random bytes and an HMAC
// of both byte strings under the secret. The accepting process answers with another HMAC of both. HMACs of the two
// sides and of different connection kinds have different labels, so no HMAC can be replayed as another. Later messages
// are neither encrypted nor signed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/sha256.h"
#include "core/comm/tcp_socket.h"

namespace hctr {

/// The key that both sides must know. With an empty secret, every program that speaks this protocol can answer; the key
/// then only rejects unrelated programs.
struct JobKey {
  std::string secret;
  std::string job = {};  ///< identifies the job; not secret
  bool made = false;     ///< whether the processes generated the secret themselves, when they first joined
};

enum class ConnectionKind : char {
  data = 'd',     ///< connection to process 0
  control = 'c',  ///< connection to process 0 for heartbeats
  peer = 'p',     ///< connection between processes other than process 0
  watch = 'w'     ///< heartbeat connection between processes joined by MPI
};

// Sizes of the three messages in bytes.
inline constexpr size_t kChallengeBytes = 8 + 32, kAnswerBytes = 1 + 32 + 32, kVerdictBytes = 1 + 32;

/// The accepting side of the handshake.
class Challenge {
 public:
  Challenge();
  /// Returns the first message.
  std::string text() const;
  /// Checks an answer of kAnswerBytes bytes. Returns its connection kind if the sender knows the secret, else nullopt.
  /// Stores the reply in `verdict`.
  std::optional<ConnectionKind> check(std::string_view answer, const JobKey&, std::string& verdict) const;

 private:
  Digest nonce_;
};

/// Returns the second message, the reply to `challenge` of kChallengeBytes bytes. `nonce`: random bytes of this side.
std::string answer_to(std::string_view challenge, const JobKey&, ConnectionKind, const Digest& nonce);

/// Runs the connecting side. Returns false if the peer rejects the secret. Errors: Error(comm) if the peer is another
/// program, does not know the secret, or does not answer in time.
bool prove_membership(const TcpSocket&, const JobKey&, ConnectionKind, TcpClock::time_point end);

/// The listening process of a connection.
struct MemberAddress {
  std::string host;
  int port;
  std::string name;  ///< name of the process, for messages
};

/// Connects and authenticates. Retries until `end` if the peer closes the connection without an answer. `limit`: time
/// limit of one attempt. Errors: Error(comm), immediately if the secret is rejected.
TcpSocket connect_as_member(const MemberAddress&, const JobKey&, ConnectionKind, TcpClock::time_point end,
                            std::chrono::seconds limit);

}  // namespace hctr
