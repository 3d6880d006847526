// GPUs joined by NCCL. Defined where the build has NCCL (HCTR_WITH_NCCL), called there alone.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/rank_group.h"

namespace hctr {

/// The communicator of a rank on a GPU. Called by every rank of the job at once, each in its own thread; `group`
/// outlives it and carries what ranks say on the host. Errors: Error(comm).
std::unique_ptr<Communicator> make_nccl_comm(RankGroup& group, int rank, Device);

}  // namespace hctr
