// The placement plan of a run: which rank holds which embedding rows.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "engine/placement/plan.h"
#include "train/key_sample.h"
#include "train/run_folder.h"

namespace hctr {

/// The planning problem of a config. `keys`: counts from the data by sparse input and slot; empty: unknown.
PlanProblem plan_problem(const Config&, int64_t ranks, const std::vector<std::vector<SlotKeys>>& keys);

/// Collective. The placement of each embedding, the same on all ranks: that of `saved`, a plan in a checkpoint, if it
/// is given; else read from the solver's placement_file, or made on rank 0 from measured speeds and sampled keys. Rank
/// 0 logs it and writes it to the run folder. Empty on a single rank. Errors: Error(config) for a file that does not
/// fit; Error(io); those of the reader.
std::vector<Placement> make_placements(const Config&, Runtime&, Communicator&, const RunFolder&, const Log&,
                                       const Json* saved = nullptr);

/// The placements of a run as far as the config says: of its placement_file where that exists, else of a plan with the
/// problem's speeds. Errors: Error(config) for a placement_file that does not fit.
std::vector<Placement> expected_placements(const Config&, const PlanProblem&);

/// The plan as --check shows it, made without data and with assumed speeds; empty on one rank. Errors: Error(config)
/// for a placement_file that does not fit.
std::string plan_outlook(const Config&);

}  // namespace hctr
