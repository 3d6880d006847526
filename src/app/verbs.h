// The commands of huge_ctr.
#pragma once

#include "program/command_verbs.h"

namespace hctr {

std::vector<Verb> verbs_of_huge_ctr();

}  // namespace hctr
