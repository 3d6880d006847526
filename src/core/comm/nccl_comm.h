// GPUs joined by NCCL. Only builds with NCCL (HCTR_WITH_NCCL) define and call this.
#pragma once

#include <memory>

#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"

namespace hctr {

/// The communicator of a rank on a GPU. Collective: every rank of the job calls it in its own thread. `group` exchanges
/// host values, and must outlive the communicator. Errors: Error(comm).
std::unique_ptr<Communicator> make_nccl_comm(RankGroup& group, int rank, Device);

}  // namespace hctr
