// The plan of a run: which rank has which rows of its embeddings.
#pragma once

#include "base/log.h"
#include "comm/communicator.h"
#include "embedding/plan.h"
#include "model/config.h"
#include "train/key_sample.h"
#include "train/run_folder.h"

namespace hctr {

/// The tables of a config as the plan sees them. `keys`: what samples of the data say; empty: nothing is known of them.
PlanProblem plan_problem(const Config&, int64_t ranks, const std::vector<std::vector<SlotKeys>>& keys);

/// Of each embedding, the same on all ranks: from the solver's placement_file, or made on rank 0 from what is measured
/// now; printed and written to the run folder. Nothing on a rank that is alone. Collective. Errors: Error(config) for a
/// file that does not fit; Error(io); those of the reader.
std::vector<Placement> agree_on_plan(const Config&, Runtime&, Communicator&, const RunFolder&, const Log&);

/// What --check can say of the plan without data and machine; empty on one rank. Errors: Error(config) for a
/// placement_file that does not fit.
std::string plan_outlook(const Config&);

}  // namespace hctr
