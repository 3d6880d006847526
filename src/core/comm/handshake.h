// What two processes say to each other before anything else: each proves that it knows the secret of the job, without
// saying it. The one that accepts sends 32 bytes that nobody can predict; the one that has connected sends the same and
// a code of both, by its secret; the other one answers with another code of both. The codes of the two sides, and of
// the kinds of connections, have different labels, so that no answer serves as another one. What is said later is
// neither encrypted nor signed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/sha256.h"
#include "core/comm/tcp_socket.h"

namespace hctr {

/// What both must know. Without a secret anybody can answer; then it only tells this program from others.
struct JobKey {
  std::string secret;
  std::string job = {};  ///< what tells this job from others, which is no secret
  bool made = false;     ///< the processes made the secret when they first joined
};

enum class ConnectionKind : char {
  data = 'd',     ///< to process 0
  control = 'c',  ///< to process 0, for signs of life
  peer = 'p',     ///< between the others
  watch = 'w'     ///< for signs of life between processes that MPI has joined
};

// The sizes of the three messages.
inline constexpr size_t kChallengeBytes = 8 + 32, kAnswerBytes = 1 + 32 + 32, kVerdictBytes = 1 + 32;

/// The side that accepts.
class Challenge {
 public:
  Challenge();
  /// The first message.
  std::string text() const;
  /// The kind of connection of an answer [kAnswerBytes] whose sender knows the secret; nothing if it does not. Leaves
  /// in `verdict` the message that belongs to it.
  std::optional<ConnectionKind> check(std::string_view answer, const JobKey&, std::string& verdict) const;

 private:
  Digest nonce_;
};

/// The second message, for the first one, [kChallengeBytes]. `nonce`: of this side, which nobody can predict.
std::string answer_to(std::string_view challenge, const JobKey&, ConnectionKind, const Digest& nonce);

/// The side that has connected. False: the other end does not accept the secret of this one. Errors: Error(comm) where
/// it is another program, does not know the secret itself, or does not answer in time.
bool prove_membership(const TcpSocket&, const JobKey&, ConnectionKind, TcpClock::time_point end);

/// Connects and proves it, and tries again until `end` where the other end closes the connection before it has
/// answered. `limit`: of one attempt. Errors: Error(comm), at once where the secret is refused.
TcpSocket connect_as_member(const std::string& host, int port, const std::string& what, const JobKey&, ConnectionKind,
                            TcpClock::time_point end, std::chrono::seconds limit);

}  // namespace hctr
