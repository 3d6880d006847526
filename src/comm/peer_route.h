// A route over which GPUs write to each other's memory.
#pragma once

#include <memory>

#include "comm/route.h"

namespace hctr {

/// The route of ranks whose GPUs all reach each other's memory (of one host, in one process or several), or null, on
/// every rank, where they do not or NCCL_P2P_DISABLE is 1. What a step sends may depend on its batch, and yet the step
/// can be recorded. `given_up`: memory of the host; kernels that wait for a peer end when it is not 0. Errors:
/// Error(device), Error(comm).
std::unique_ptr<Route> make_peer_route(Communicator&, const RouteSpec&, const volatile int32_t* given_up);

}  // namespace hctr
