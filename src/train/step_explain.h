// The plan of a training step as a config gives it, without a GPU, without data and without memory for the model.
#pragma once

#include <optional>
#include <string>

#include "config/sections/config.h"
#include "core/device/gpu_traits.h"
#include "net/plan/step_plan.h"

namespace hctr {

/// What Replica finds of a model once it is bound. `gpu`: none: a CPU. Several processes count as hosts of their own,
/// and GPUs of one host as such that reach each other's memory. Errors: Error(config).
StepFacts expected_step_facts(const Config&, const std::optional<GpuTraits>&);

/// What `huge_ctr --explain step` prints.
std::string explain_step(const Config&, const std::optional<GpuTraits>&);

}  // namespace hctr
