// Handles of CUDA libraries that a Runtime owns.
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/device/buffer.h"
#include "core/device/context.h"

namespace hctr {

/// The cuBLASLt descriptors of a GEMM, and the algorithm chosen for it.
struct BlasProduct {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t first, second, result, addend;  ///< addend: `result` if there is no other
  cublasLtMatmulAlgo_t algorithm;
};

/// An FP8 GEMM, and whether it adds the bias.
struct Fp8Plan {
  BlasProduct product;
  bool epilogue;
};

/// Used only by the thread of its rank.
struct Runtime::CudaLibraries {
  static constexpr int kMostPieces = 1024;  ///< maximum pieces of a GEMM
  explicit CudaLibraries(int index);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;
  cublasLtHandle_t blas = nullptr;
  Buffer blas_workspace;  ///< shared by all GEMMs on the compute stream of the Runtime
  /// Workspace of all GEMMs on other streams, whose handles these are (ops::add_product_stream). It has the same size,
  /// so that the library chooses the same algorithms.
  std::optional<Buffer> side_workspace;
  std::set<void*> side_streams;
  /// The next tile of our GEMM on the compute stream (ops/gemm/fused_product.cuh); 0 between GEMMs.
  Buffer tile_counter;
  /// Which partial sums are complete, of our GEMM on the compute stream, and of one on another stream; 0 between GEMMs
  /// (ops/gemm/tile_division.cuh).
  Buffer piece_flags;
  /// Converted operands of the running GEMM (ops/gemm/operand_memory.cuh). Recorded steps keep its address.
  std::optional<ReservedBuffer> operands;
  /// The GEMMs so far, by everything that their algorithm depends on: equal GEMMs always use the same algorithm.
  std::map<std::array<int64_t, 17>, BlasProduct> products;
  /// FP8 GEMMs, by their own keys (ops/gemm/fp8_product.cu).
  std::map<std::array<int64_t, 17>, Fp8Plan> fp8_products;
  /// Like `products`, for batched GEMMs (ops/gemm/batched_matmul.h).
  std::map<std::array<int64_t, 20>, BlasProduct> batched_products;
  /// Measured or loaded algorithms, by the same key (ops/gemm/product_search.h).
  std::map<std::array<int64_t, 17>, cublasLtMatmulAlgo_t> chosen;
};

}  // namespace hctr
