// KernelTrace with CUPTI. Defined (cupti_trace.cu) only in builds that found CUPTI's header. Its records are
// process-wide, because CUPTI permits one trace per process, and calls back without an argument of the caller.
#pragma once

#include <memory>
#include <string>

#include "core/device/kernel_trace.h"

namespace hctr::cuda {

std::unique_ptr<KernelTrace> start_cupti_trace(std::string& reason);
void move_cupti_mark(void* from, void* to);

}  // namespace hctr::cuda
