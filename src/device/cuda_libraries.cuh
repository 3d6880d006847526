// Handles of CUDA libraries that a Runtime owns.
#pragma once

#include <cublasLt.h>

#include "device/buffer.h"
#include "device/context.h"

namespace hctr {

struct Runtime::CudaLibraries {
  explicit CudaLibraries(int index);
  ~CudaLibraries();
  cublasLtHandle_t blas = nullptr;
  Buffer blas_workspace;  ///< given to every product: products of one Runtime run on its compute stream alone
};

}  // namespace hctr
