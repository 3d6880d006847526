// `huge_ctr --explain step FILE.json`.
#pragma once

#include <string>

#include "hctr/solver.h"

namespace hctr {

/// The plan of a training step as text. `config`: the config file. Errors: Error(usage) if `config` is empty; those of
/// the config.
std::string explain_step_of(const std::string& config, const JobOptions&);

}  // namespace hctr
