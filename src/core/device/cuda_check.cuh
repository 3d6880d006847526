// Defines HCTR_CHECK, which checks every call of CUDA and its libraries.
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include "core/base/expect.h"
#include "core/device/stream.h"

namespace hctr::cuda {

[[noreturn]] void fail(cudaError_t, const char* call, const char* file, int line);
[[noreturn]] void fail(cublasStatus_t, const char* call, const char* file, int line);
[[noreturn]] void fail(CUresult, const char* call, const char* file, int line);

inline void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status != cudaSuccess) fail(status, call, file, line);
}
inline void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(status, call, file, line);
}
inline void check(CUresult status, const char* call, const char* file, int line) {
  if (status != CUDA_SUCCESS) fail(status, call, file, line);
}

inline cudaStream_t stream_of(StreamRef stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace hctr::cuda

/// Evaluates the call once and checks its status. Errors: Error(device) with the call and the reason.
#define HCTR_CHECK(...) ::hctr::cuda::check((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
