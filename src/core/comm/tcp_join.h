// Connects the processes of a job with each other over TCP: process 0 waits at a known port, the others report to it
// and learn from it where all are.
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

/// The connections of one process.
struct JobConnections {
  std::vector<TcpSocket> data;     ///< by process; none to itself
  std::vector<TcpSocket> control;  ///< of process 0: by process; of others: to process 0, as the only one
  std::vector<std::string> hosts;  ///< by process: the name of its host
  int process = 0;                 ///< the number of this one; the launcher's, unless others before it are lost
};

/// Collective over the processes of the job. `version`: of the program, which must be that of process 0. Process 0 logs
/// who takes part. Errors: Error(comm) on every process that can be reached,
/// naming host, address and port, who is missing when the time is over, and who differs; Error(usage) from its own
/// environment. `lost_after`: of a job that was restarted. Those that are there at that time go on without the others,
/// numbered anew in their order; process 0 must be among them, and says who is lost. `agreed`: where the launch has no
/// secret, the one that earlier joins have made, which this join asks for; without one, this join makes it and leaves
/// it there.
JobConnections join_job(const Launch&, std::string_view version, TcpClock::time_point end, const Log&,
                        std::optional<TcpClock::time_point> lost_after = {}, AgreedSecret* agreed = nullptr);

}  // namespace hctr
