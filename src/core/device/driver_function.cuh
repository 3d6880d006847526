// Access to functions of the CUDA driver.
#pragma once

#include "core/device/cuda_check.cuh"

namespace hctr::cuda {

/// Looks up a driver function at run time. A program that links the driver would not start on a machine without the
/// driver.
template <class Function>
Function* driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  HCTR_CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  HCTR_EXPECT(result == cudaDriverEntryPointSuccess && found, "the CUDA driver has no ", name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace hctr::cuda
