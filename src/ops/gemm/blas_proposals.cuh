// Helpers for GEMMs by cuBLASLt: attributes, algorithm proposals, and a check whether the library accepts an algorithm
// chosen earlier.
#pragma once

#include <cstdint>
#include <span>

#include "core/device/cuda_check.cuh"
#include "core/device/cuda_libraries.cuh"

namespace hctr::ops::cuda {

/// The largest power of two up to 256 that divides the address.
inline uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

template <class Value>
inline void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  HCTR_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

/// Alignment in bytes of the addresses of a, b, c and the addend in c = op(a) op(b) + addend.
struct ProductAlignment {
  uint32_t a, b, c, addend = c;
};

/// Fills `proposals` with the library's proposals, best first, and returns their number. Deterministic.
inline int propose(Runtime::CudaLibraries& libraries, BlasProduct& product, ProductAlignment alignment,
                   std::span<cublasLtMatmulHeuristicResult_t> proposals) {
  cublasLtMatmulPreferenceOpaque_t preference;
  HCTR_CHECK(cublasLtMatmulPreferenceInit(&preference));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    HCTR_CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(libraries.blas_workspace.bytes()));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment.b);  // b is the library's first operand
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment.a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment.addend);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment.c);
  // With split-K, the partial sums are added in f32 and in order, not in the dtype of c.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  int count = 0;
  HCTR_CHECK(cublasLtMatmulAlgoGetHeuristic(libraries.blas, &product.operation, &product.first, &product.second,
                                            &product.addend, &product.result, &preference,
                                            static_cast<int>(proposals.size()), proposals.data(), &count));
  return count;
}

/// Whether the library can compute the GEMM with this algorithm and the available workspace.
inline bool accepts(Runtime::CudaLibraries& libraries, BlasProduct& product, const cublasLtMatmulAlgo_t& algorithm) {
  cublasLtMatmulHeuristicResult_t result{};
  return cublasLtMatmulAlgoCheck(libraries.blas, &product.operation, &product.first, &product.second, &product.addend,
                                 &product.result, &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= libraries.blas_workspace.bytes();
}

}  // namespace hctr::ops::cuda
