// How an operator is declared for all devices and sent to the right one.
#pragma once

#include "base/platform.h"
#include "device/context.h"
#include "device/tensor.h"

/// Declares an operator and its twins cpu::name and cuda::name. Stands inside namespace hctr::ops.
#define HCTR_OP(...) \
  __VA_ARGS__;       \
  namespace cpu {    \
  __VA_ARGS__;       \
  }                  \
  namespace cuda {   \
  __VA_ARGS__;       \
  }

/// Calls cuda::call or cpu::call. In a CPU build the CUDA name stands in a discarded branch, so nothing needs a stub;
/// in a CUDA build a missing twin does not link. There is no fallback.
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
