// Connects the processes of a job over TCP. Process 0 waits at a known port; the other processes report to process 0
// and receive the addresses of all processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/comm/job_secret.h"
#include "core/comm/launcher.h"
#include "core/comm/tcp_socket.h"

namespace hctr {

/// The TCP connections of one process.
struct JobConnections {
  std::vector<TcpSocket> data;  ///< [process]: the connection to the process; not connected for this process itself
  /// Process 0: [process], the connection to each process. Other processes: a single connection, to process 0.
  std::vector<TcpSocket> control;
  std::vector<std::string> hosts;  ///< [process]: its host name
  /// number of this process: the launcher's number, minus the lost processes before it
  int process = 0;
};

/// Collective over the processes of the job. `version`: the version of the program, which must be the same as on
/// process 0. Process 0 logs the members. `lost_after`: set after a restart; processes that have not joined by then are
/// lost. The remaining processes are renumbered in order, and process 0, which must be present, logs the lost ones.
/// `agreed`: used if the launch has no secret. If `agreed` contains a secret of an earlier join, this join requires
/// that secret; otherwise this join generates a secret and stores it in `agreed`. Errors: Error(comm) on every
/// reachable process, naming host, address and port, and the missing or differing process; Error(usage) for the
/// environment of this process.
JobConnections join_job(const Launch&, std::string_view version, TcpClock::time_point end, const Log&,
                        std::optional<TcpClock::time_point> lost_after = {}, AgreedSecret* agreed = nullptr);

}  // namespace hctr
