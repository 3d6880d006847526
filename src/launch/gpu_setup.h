// Checks the machine before several GPUs are connected: detects set-ups with which NCCL is slow, hangs or fails, and
// suggests corrections.
#pragma once

#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Facts about one rank's machine, gathered by that rank.
struct RankSetup {
  std::string host, gpu, gpu_id;         ///< gpu: description; gpu_id: name in gpu_links()
  std::vector<std::string> unreachable;  ///< ids of GPUs of this host whose memory this GPU cannot read
  int64_t shared_memory = 0;             ///< bytes free in /dev/shm
  std::vector<std::string> interfaces;   ///< network interfaces that are up
  std::string wanted;                    ///< value of NCCL_SOCKET_IFNAME
};
RankSetup setup_of(Device, const Environment&);

struct SetupProblem {
  enum class Severity {
    error,    ///< training cannot start
    warning,  ///< training may be slow or fail
    hint      ///< reported only if connecting fails
  };
  Severity severity;
  std::string text;
};
/// Detects: GPUs of different models; one GPU shared by two ranks; GPUs of one host that cannot read each other's
/// memory; little shared memory; a requested network interface that does not exist; several hosts without a requested
/// interface. `ranks`: indexed by rank.
std::vector<SetupProblem> find_setup_problems(const std::vector<RankSetup>& ranks);

/// Whether a value of NCCL_SOCKET_IFNAME allows an interface. The value lists prefixes ("eth,ib"), exact names
/// ("=eth0"), or excluded names ("^docker,lo").
bool allows_interface(const std::string& wanted, const std::string& interface);

/// Collective. Logs warnings on rank 0. Returns all warnings and hints on every rank, one per line. If connecting fails
/// later, the error contains these lines. Errors: Error(comm) on every rank when a problem of severity `error` is
/// found.
std::string check_gpu_setup(Communicator&, Device, const Environment&, const Log&);

}  // namespace hctr
