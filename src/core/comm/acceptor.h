// Accepts connections of other processes of the job only.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/handshake.h"
#include "core/comm/tcp_listener.h"

namespace hctr {

/// A connection whose other end knows the secret, and its first text.
struct Accepted {
  TcpSocket socket;
  ConnectionKind kind;
  std::string greeting;
};

/// Polls all connections together, each with its own time limit, so that idle ones do not delay others.
class Acceptor {
 public:
  /// `listener` must outlive it. `keys`: the other end must know one of these. `kinds`: the expected connections;
  /// others are closed.
  Acceptor(const TcpListener& listener, std::vector<JobKey> keys, std::string kinds);

  /// The next connection; none if there was none until `end`. Errors: Error(comm).
  std::optional<Accepted> next(TcpClock::time_point end);
  /// The number of connections closed because they did not prove that they know the secret, and the address of the
  /// first.
  int64_t refused() const { return refused_; }
  const std::string& first_refused() const { return first_refused_; }

 private:
  struct Pending {
    TcpSocket socket;
    TcpClock::time_point since;
    Challenge challenge = {};
    std::string received = {};
    std::optional<ConnectionKind> kind = {};  ///< set once it has proved that it knows the secret
  };
  enum class State { waits, over, greeted };

  void take_new();
  void drop_late();
  State advance(Pending&);
  /// Receives available bytes, up to `size` in all. False at the end of the connection.
  static bool fill(Pending&, size_t size);

  const TcpListener& listener_;
  std::vector<JobKey> keys_;
  std::string kinds_;
  std::list<Pending> pending_;  // the oldest first
  int64_t refused_ = 0;
  std::string first_refused_;
};

}  // namespace hctr
