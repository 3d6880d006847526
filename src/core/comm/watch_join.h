// Connects the watches (core/comm/watch.h) of processes that MPI has joined.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/tcp_socket.h"

namespace hctr {

/// Collective. `of_each` [processes][bytes]: what each process gives as `mine` [bytes].
using GatherBytes = std::function<void(const void* mine, int32_t bytes, void* of_each)>;

struct WatchConnections {
  std::vector<TcpSocket> control;  ///< of process 0: by process; of others: to process 0, as the only one
  std::vector<std::string> hosts;  ///< by process: the name of its host
  std::string missing;             ///< who could not connect, from where to where; empty if all are connected
};

/// Collective. `process` of `count`: this one. `address`: by which the others reach process 0, on which alone it
/// counts; nothing: any of the interfaces of its host that are up. Process 0 listens at a port that the system chooses.
/// Who cannot connect within `limit` is left without a connection: MPI may use a network that TCP does not. Errors:
/// those of `gather`; Error(comm) where process 0 cannot listen.
WatchConnections connect_watches(int process, int count, const std::optional<std::string>& address,
                                 std::chrono::seconds limit, const GatherBytes& gather);

}  // namespace hctr
