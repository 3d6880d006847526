// Declares operators for all devices, and dispatches to the implementation for a device.
#pragma once

#include "core/base/platform.h"
#include "core/device/context.h"
#include "core/device/tensor.h"

/// Declares an operator and its implementations cpu::name and cuda::name. Used in namespace hctr::ops.
#define HCTR_OP(...) \
  __VA_ARGS__;       \
  namespace cpu {    \
  __VA_ARGS__;       \
  }                  \
  namespace cuda {   \
  __VA_ARGS__;       \
  }

/// Calls cuda::call or cpu::call by the context's device. In a CPU build the CUDA call is in a discarded branch, so no
/// stubs are needed. In a CUDA build a missing implementation is a link error; there is no fallback.
#define HCTR_ON_DEVICE(ctx, ...)          \
  do {                                    \
    if ((ctx).device().is_cuda()) {       \
      if constexpr (::hctr::kCudaBuild) { \
        cuda::__VA_ARGS__;                \
      }                                   \
    } else {                              \
      cpu::__VA_ARGS__;                   \
    }                                     \
  } while (false)
