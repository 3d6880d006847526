// KernelTrace by CUPTI. Only builds that found its header define it (cupti_trace.cu).
#pragma once

#include <memory>
#include <string>

#include "core/device/kernel_trace.h"

namespace hctr::cuda {

std::unique_ptr<KernelTrace> start_cupti_trace(std::string& reason);
void move_cupti_mark(void* from, void* to);

}  // namespace hctr::cuda
