// KernelTrace with CUPTI. Only builds that found CUPTI's header define it (cupti_trace.cu). The records are
// process-wide, because CUPTI permits one trace per process and passes no user data to its callbacks.
#pragma once

#include <memory>
#include <string>

#include "core/device/kernel_trace.h"

namespace hctr::cuda {

std::unique_ptr<KernelTrace> start_cupti_trace(std::string& reason);
void move_cupti_mark(void* from, void* to);

}  // namespace hctr::cuda
