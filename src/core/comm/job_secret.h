// The secret by which processes of a job know each other.
#pragma once

#include <string>

#include "core/comm/launcher.h"

namespace hctr {

/// HCTR_JOB_SECRET, or the content of the file that HCTR_JOB_SECRET_FILE names, without blanks and line ends behind it;
/// empty where neither is set. Errors: Error(usage) where both are set, or it is shorter than 16 characters, so that an
/// empty variable does not pass for a secret, or others than the owner may read or write the file; Error(io) where it
/// cannot be read.
std::string find_job_secret(const Environment&);

}  // namespace hctr
