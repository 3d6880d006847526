// The placement plan of a run: the owner rank of each embedding row.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "engine/placement/plan.h"
#include "train/key_sample.h"
#include "train/run_folder.h"

namespace hctr {

/// The planning problem for a config. `keys`: counts from the data, by sparse input and slot; empty: unknown.
PlanProblem plan_problem(const Config&, int64_t ranks, const std::vector<std::vector<SlotKeys>>& keys);

/// Collective. The placement of each embedding, equal on all ranks. The source is `saved`, a checkpoint's plan, if
/// given; else the solver's placement_file; else rank 0 makes a plan from measured speeds and sampled keys. Rank 0 logs
/// the plan and writes it to the run folder. Empty on a single rank. Errors: Error(config) if the file does not fit;
/// Error(io); those of the reader.
std::vector<Placement> make_placements(const Config&, Runtime&, Communicator&, const RunFolder&, const Log&,
                                       const Json* saved = nullptr);

/// The placements of a run, as far as the config determines them: from placement_file if the file exists, else from a
/// plan with the problem's speeds. Errors: Error(config) if placement_file does not fit.
std::vector<Placement> expected_placements(const Config&, const PlanProblem&);

/// The memory of a GPU that a plan may use; 0: unknown.
int64_t memory_for_plan(double gpu_bytes);

/// The plan that --check prints, made without data and with assumed speeds; empty on one rank. `gpu_bytes`: memory of
/// each GPU; 0: unknown. Errors: Error(config) for a placement_file that does not fit.
std::string plan_outlook(const Config&, double gpu_bytes);

}  // namespace hctr
