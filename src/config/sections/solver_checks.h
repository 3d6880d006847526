// Rules across the fields of the solver section, which its schema applies after it has read the fields.
#pragma once

#include <string>

#include "config/problems.h"
#include "config/sections/solver_section.h"

namespace hctr {

/// Reports fields that contradict each other, copies other spellings of fields to the fields that the program reads,
/// and sets num_epochs to 1 if no training length is given.
void check_solver(SolverSection&, const std::string& pointer, Problems&);

}  // namespace hctr
