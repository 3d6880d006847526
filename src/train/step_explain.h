// Makes the plan of a training step from a config, without a GPU, data, or memory for the model.
#pragma once

#include <optional>
#include <string>

#include "config/sections/config.h"
#include "core/device/gpu_traits.h"
#include "net/plan/step_plan.h"

namespace hctr {

/// The facts that a bound Replica would have. `gpu`: none: a CPU. Several processes count as separate hosts; GPUs of
/// one host can access each other's memory. Errors: Error(config).
StepFacts expected_step_facts(const Config&, const std::optional<GpuTraits>&);

/// The output of `huge_ctr --explain step`.
std::string explain_step(const Config&, const std::optional<GpuTraits>&);

}  // namespace hctr
