// A peer exchange in which GPUs write directly to each other's memory.
#pragma once

#include <memory>

#include "core/comm/peer_exchange.h"

namespace hctr {

/// Returns null on every rank if some GPU cannot access another GPU's memory, or if a rank passes `allowed` = false.
/// All GPUs must be in one host, in one or several processes. The number of bytes written may differ from step to step,
/// also in a recorded step. `aborted`: host memory; waiting kernels end once it is nonzero. Errors: Error(device),
/// Error(comm).
std::unique_ptr<PeerExchange> make_gpu_peer_exchange(Communicator&, const PeerExchangeSpec&,
                                                     const volatile int32_t* aborted, bool allowed);

}  // namespace hctr
