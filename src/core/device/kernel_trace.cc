#include "core/device/kernel_trace.h"

#include "core/device/cupti_trace.h"

namespace hctr {

std::unique_ptr<KernelTrace> KernelTrace::start(std::string& reason) {
  if constexpr (HCTR_WITH_CUPTI) {  // 0 or 1, set by CMake for this folder
    return cuda::start_cupti_trace(reason);
  } else {
    reason = "this program was built without CUPTI";
    return nullptr;
  }
}

void KernelTrace::move_mark(void* from, void* to) {
  if constexpr (HCTR_WITH_CUPTI) cuda::move_cupti_mark(from, to);
}

}  // namespace hctr
