// Connects the watches (core/comm/watch.h) of processes joined by MPI.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/tcp_socket.h"

namespace hctr {

/// Collective. `of_each` [processes][bytes]: the `mine` [bytes] of each process.
using GatherBytes = std::function<void(const void* mine, int32_t bytes, void* of_each)>;

struct WatchConnections {
  std::vector<TcpSocket> control;  ///< process 0: by process; others: only the connection to process 0
  std::vector<std::string> hosts;  ///< by process: the name of its host
  std::string missing;             ///< processes that could not connect, and both ends; empty if all are connected
};

/// Collective. `process` of `count`: this process. `address`: where the others reach process 0, used only there; none:
/// any interface of its host that is up. Process 0 listens at a port that the system chooses. A process that cannot
/// connect within `limit` has no connection: MPI may use a network that TCP cannot. Errors: those of `gather`;
/// Error(comm) if process 0 cannot listen.
WatchConnections connect_watches(int process, int count, const std::optional<std::string>& address,
                                 std::chrono::seconds limit, const GatherBytes& gather);

}  // namespace hctr
