// Connects the heartbeat watches (core/comm/watch.h) of processes joined by MPI.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/tcp_socket.h"

namespace hctr {

/// Collective all-gather. Each process passes `bytes` bytes at `mine`. Every process receives the bytes of all
/// processes in `of_each` [processes][bytes].
using GatherBytes = std::function<void(const void* mine, int32_t bytes, void* of_each)>;

struct WatchConnections {
  /// Process 0: [process], the connection to each process. Other processes: only the connection to process 0.
  std::vector<TcpSocket> control;
  std::vector<std::string> hosts;  ///< [process]: its host name
  /// for messages: which processes have no connection, and why the first of them failed; empty if all are connected
  std::string missing;
};

/// Collective. `process`: the number of this process. `count`: the number of processes. `address`: read on process 0
/// only; the address at which the other processes reach process 0. Without `address`, process 0 offers every interface
/// that is up. Process 0 listens on a port chosen by the system. A process that cannot connect within `limit` gets no
/// connection, because MPI may use a network without TCP. Errors: those of `gather`; Error(comm) if process 0 cannot
/// listen.
WatchConnections connect_watches(int process, int count, const std::optional<std::string>& address,
                                 std::chrono::seconds limit, const GatherBytes& gather);

}  // namespace hctr
