// Handles of CUDA libraries that a Runtime owns.
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>

#include "device/buffer.h"
#include "device/context.h"

namespace hctr {

/// One matrix product as cuBLASLt wants it described, with the algorithm chosen for it.
struct BlasProduct {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t first, second, result;
  cublasLtMatmulAlgo_t algorithm;
};

/// Used by the rank's own thread alone.
struct Runtime::CudaLibraries {
  explicit CudaLibraries(int index);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;
  cublasLtHandle_t blas = nullptr;
  Buffer blas_workspace;  ///< given to every product: products of one Runtime run on its compute stream alone
  /// Products seen so far, by what their algorithm depends on: equal products always run the same algorithm.
  std::map<std::array<int64_t, 16>, BlasProduct> products;
};

}  // namespace hctr
