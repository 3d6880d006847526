// The NCCL communicator. Only builds with NCCL (HCTR_WITH_NCCL) define and call this function.
#pragma once

#include <memory>

#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"

namespace hctr {

/// Creates the communicator of a rank on a GPU. Collective: every rank of the job calls this in its own thread. `group`
/// exchanges host values and must outlive the communicator. Errors: Error(comm).
std::unique_ptr<Communicator> make_nccl_comm(RankGroup& group, int rank, Device);

}  // namespace hctr
