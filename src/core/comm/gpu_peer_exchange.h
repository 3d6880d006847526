// A peer exchange whose GPUs write directly to each other's memory.
#pragma once

#include <memory>

#include "core/comm/peer_exchange.h"

namespace hctr {

/// Returns null, on every rank, unless all GPUs can access each other's memory (they are in one host, in one or several
/// processes) and it is `allowed` on each rank. The bytes written in a step may depend on its batch, and the step can
/// still be recorded. `aborted`: host memory; kernels that wait for a peer end when it is not 0. Errors: Error(device),
/// Error(comm).
std::unique_ptr<PeerExchange> make_gpu_peer_exchange(Communicator&, const PeerExchangeSpec&,
                                                     const volatile int32_t* aborted, bool allowed);

}  // namespace hctr
