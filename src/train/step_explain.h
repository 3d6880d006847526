// Makes the plan of a training step from a config, without a GPU, data, or model memory.
#pragma once

#include <optional>
#include <string>

#include "config/sections/config.h"
#include "core/device/gpu_traits.h"
#include "net/plan/step_plan.h"

namespace hctr {

/// The facts about a step that a bound Replica would have. Without a GPU (`gpu`), the step runs on the CPU. Assumes
/// that processes are on separate hosts, and that GPUs of one host have peer access. Errors: Error(config).
StepFacts expected_step_facts(const Config&, const std::optional<GpuTraits>&);

/// The output of `huge_ctr --explain step`.
std::string explain_step(const Config&, const std::optional<GpuTraits>&);

}  // namespace hctr
