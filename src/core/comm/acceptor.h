// Accepts connections only from other processes of the job.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/handshake.h"
#include "core/comm/tcp_listener.h"

namespace hctr {

/// An authenticated connection and its first message.
struct Accepted {
  TcpSocket socket;
  ConnectionKind kind;
  std::string greeting;
};

/// Polls all pending connections together, each with its own time limit. An idle connection does not delay others.
class Acceptor {
 public:
  /// `listener` must outlive the Acceptor. A peer must know one of `keys`. `kinds`: the accepted connection kinds;
  /// connections of other kinds are closed.
  Acceptor(const TcpListener& listener, std::vector<JobKey> keys, std::string kinds);

  /// Returns the next authenticated connection, or nullopt if none arrives until `end`. Errors: Error(comm).
  std::optional<Accepted> next(TcpClock::time_point end);
  /// The number of connections that failed to authenticate, and the peer address of the first of these connections.
  int64_t refused() const { return refused_; }
  const std::string& first_refused() const { return first_refused_; }

 private:
  struct Pending {
    TcpSocket socket;
    TcpClock::time_point since;
    Challenge challenge = {};
    std::string received = {};
    std::optional<ConnectionKind> kind = {};  ///< set once the peer has authenticated
  };
  enum class State { waits, over, greeted };

  void take_new();
  void drop_late();
  State advance(Pending&);
  /// Receives available bytes, up to `size` in total. Returns false if the connection ended.
  static bool fill(Pending&, size_t size);

  const TcpListener& listener_;
  std::vector<JobKey> keys_;
  std::string kinds_;
  std::list<Pending> pending_;  // in the order of their arrival
  int64_t refused_ = 0;
  std::string first_refused_;
};

}  // namespace hctr
