// Replaces the functions of cuBLASLt by wrappers. The first call loads the library. A program that links the library
// would need 0.1 s of CPU time to start, even on machines without a GPU.
#include <cublasLt.h>
#include <dlfcn.h>

#include <string>

#include "core/base/expect.h"

namespace {

void* cublas_lt() {
  static void* const library = [] {
    const std::string file = hctr::cat("libcublasLt.so.", CUBLAS_VER_MAJOR);
    void* const found = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!found)
      throw hctr::Error(hctr::Kind::device,
                        hctr::cat("cannot load ", file, ", which multiplies matrices on GPUs: ", ::dlerror(),
                                  "; the library is part of CUDA: set LD_LIBRARY_PATH to its folder"));
    return found;
  }();
  return library;
}

template <class Function>
Function* cublas_lt_function(const char* name) {
  void* const found = ::dlsym(cublas_lt(), name);
  if (!found) throw hctr::Error(hctr::Kind::device, hctr::cat("cuBLASLt has no ", name, ": ", ::dlerror()));
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// Looks up the function `name` once, then calls it.
#define HCTR_OF_CUBLAS_LT(name, ...)                                         \
  do {                                                                       \
    static auto* const function = cublas_lt_function<decltype(name)>(#name); \
    return function(__VA_ARGS__);                                            \
  } while (false)

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { HCTR_OF_CUBLAS_LT(cublasLtCreate, handle); }

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { HCTR_OF_CUBLAS_LT(cublasLtDestroy, handle); }

const char* cublasLtGetStatusString(cublasStatus_t status) { HCTR_OF_CUBLAS_LT(cublasLtGetStatusString, status); }

size_t cublasLtGetVersion() { HCTR_OF_CUBLAS_LT(cublasLtGetVersion); }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t of_a, const void* b, cublasLtMatrixLayout_t of_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t of_c, void* d, cublasLtMatrixLayout_t of_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmul, handle, product, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm,
                    workspace, workspace_bytes, stream);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t of_a, cublasLtMatrixLayout_t of_b,
                                       cublasLtMatrixLayout_t of_c, cublasLtMatrixLayout_t of_d,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmulAlgoCheck, handle, product, of_a, of_b, of_c, of_d, algorithm, result);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t of_a, cublasLtMatrixLayout_t of_b,
                                              cublasLtMatrixLayout_t of_c, cublasLtMatrixLayout_t of_d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmulAlgoGetHeuristic, handle, product, of_a, of_b, of_c, of_d, preference, most, results,
                    count);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmulDescInit_internal, product, size, compute, scale);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmulDescSetAttribute, product, attribute, value, size);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmulPreferenceInit_internal, preference, size);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t size) {
  HCTR_OF_CUBLAS_LT(cublasLtMatmulPreferenceSetAttribute, preference, attribute, value, size);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t stride) {
  HCTR_OF_CUBLAS_LT(cublasLtMatrixLayoutInit_internal, layout, size, type, rows, columns, stride);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t size) {
  HCTR_OF_CUBLAS_LT(cublasLtMatrixLayoutSetAttribute, layout, attribute, value, size);
}

#undef HCTR_OF_CUBLAS_LT
