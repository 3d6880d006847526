// Faults in the set-up of a machine that make several GPUs slow, or hang, or fail with a word of NCCL's: looked for
// before they are connected, and named with what mends them.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "comm/communicator.h"

namespace hctr {

/// What a rank knows of the place it runs in.
struct RankSetup {
  std::string host, gpu, gpu_id;         ///< gpu: as described; gpu_id: as gpu_links() names it
  std::vector<std::string> unreachable;  ///< GPUs of this host whose memory this one cannot read
  int64_t shared_memory = 0;             ///< bytes free in /dev/shm
  std::vector<std::string> interfaces;   ///< of the network, that are up
  std::string wanted;                    ///< NCCL_SOCKET_IFNAME
};
RankSetup setup_of(Device);

struct SetupFault {
  enum class Weight {
    stops,    ///< training could not begin
    warns,    ///< it can, slowly or by luck
    explains  ///< of interest when connecting fails
  };
  Weight weight;
  std::string text;
};
/// By rank. GPUs of two kinds; one GPU for two ranks; GPUs of a host that cannot read each other; little shared memory;
/// a network interface that is asked for and is not there; several hosts whose interface is left to chance.
std::vector<SetupFault> setup_faults(const std::vector<RankSetup>&);

/// Whether NCCL_SOCKET_IFNAME allows an interface: names that it begins with, or is ("=eth0"), or none of them
/// ("^docker,lo").
bool allows_interface(const std::string& wanted, const std::string& interface);

/// Collective. Tells the log of rank 0 what warns, and returns, on every rank, all that was found, for when connecting
/// fails: a line for each; or nothing. Errors: Error(comm) on every rank when a fault stops.
std::string look_for_setup_faults(Communicator&, Device, const Log&);

}  // namespace hctr
