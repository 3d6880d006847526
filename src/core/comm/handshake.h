// The first messages on a connection: each process proves that it knows the secret of the job without sending it. The
// accepting process sends 32 random bytes. The connecting process replies with 32 random bytes of its own and a code of
// both under the secret; the accepting one answers with another code of both. Codes of the two sides, and of different
// kinds of connections, have different labels, so that no code can be replayed as another. Later messages are neither
// encrypted nor signed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/sha256.h"
#include "core/comm/tcp_socket.h"

namespace hctr {

/// The keys that both sides must know. Without a secret any program can answer; the key then only distinguishes this
/// program from others.
struct JobKey {
  std::string secret;
  std::string job = {};  ///< identifies the job; not secret
  bool made = false;     ///< the processes generated the secret when they first joined
};

enum class ConnectionKind : char {
  data = 'd',     ///< to process 0
  control = 'c',  ///< to process 0, for heartbeats
  peer = 'p',     ///< between other processes
  watch = 'w'     ///< for heartbeats between processes joined by MPI
};

// Sizes of the three messages.
inline constexpr size_t kChallengeBytes = 8 + 32, kAnswerBytes = 1 + 32 + 32, kVerdictBytes = 1 + 32;

/// The accepting side.
class Challenge {
 public:
  Challenge();
  /// The first message.
  std::string text() const;
  /// The kind of connection of an answer [kAnswerBytes] whose sender knows the secret; none if it does not. Stores the
  /// reply in `verdict`.
  std::optional<ConnectionKind> check(std::string_view answer, const JobKey&, std::string& verdict) const;

 private:
  Digest nonce_;
};

/// The second message, in reply to the first one, [kChallengeBytes]. `nonce`: unpredictable random bytes of this side.
std::string answer_to(std::string_view challenge, const JobKey&, ConnectionKind, const Digest& nonce);

/// The connecting side. False: the other end rejects the secret. Errors: Error(comm) if the other end is another
/// program, does not know the secret itself, or does not answer in time.
bool prove_membership(const TcpSocket&, const JobKey&, ConnectionKind, TcpClock::time_point end);

/// Connects and authenticates; retries until `end` if the other end closes the connection without an answer. `limit`:
/// of one attempt. Errors: Error(comm), at once if the secret is rejected.
TcpSocket connect_as_member(const std::string& host, int port, const std::string& what, const JobKey&, ConnectionKind,
                            TcpClock::time_point end, std::chrono::seconds limit);

}  // namespace hctr
