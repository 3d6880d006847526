// The handles of CUDA libraries that a Runtime owns.
#pragma once

#include <cublasLt.h>

#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/device/buffer.h"
#include "core/device/context.h"

namespace hctr {

/// The cuBLASLt descriptors of a GEMM and the algorithm chosen for that GEMM.
struct BlasProduct {
  cublasLtMatmulDescOpaque_t operation;
  /// `addend` equals `result` if the GEMM has no separate addend
  cublasLtMatrixLayoutOpaque_t first, second, result, addend;
  cublasLtMatmulAlgo_t algorithm;
};

/// An FP8 GEMM. `epilogue`: whether the GEMM adds the bias.
struct Fp8Plan {
  BlasProduct product;
  bool epilogue;
};

/// The library handles of one rank. Not thread-safe: used only by the rank's thread.
struct Runtime::CudaLibraries {
  static constexpr int kMostPieces = 1024;  ///< maximum number of blocks of a GEMM that exchange partial sums
  explicit CudaLibraries(int index);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;
  cublasLtHandle_t blas = nullptr;
  Buffer blas_workspace;  ///< shared by all GEMMs on the compute stream of the Runtime
  /// Workspace for GEMMs on the streams `side_streams` (ops::add_product_stream). Has the size of blas_workspace, so
  /// that cuBLASLt chooses the same algorithms.
  std::optional<Buffer> side_workspace;
  std::set<void*> side_streams;
  /// Tile counter of our own GEMM kernels on the compute stream (ops/gemm/fused_product.cuh): the number of the next
  /// tile. The counter is 0 between GEMMs.
  Buffer tile_counter;
  /// Our own GEMM kernels set these flags when partial sums are complete (ops/gemm/tile_division.cuh). The compute
  /// stream has one array, and one other stream has the second array. All flags are 0 between GEMMs.
  Buffer piece_flags;
  /// Converted operands of the running GEMM (ops/gemm/operand_memory.cuh). Recorded steps use this address.
  std::optional<ReservedBuffer> operands;
  /// The GEMMs that have run so far. Their key contains everything on which the choice of algorithm depends, so equal
  /// GEMMs always use the same algorithm.
  std::map<std::array<int64_t, 17>, BlasProduct> products;
  /// FP8 GEMMs; the keys are those of ops/gemm/fp8_product.cu.
  std::map<std::array<int64_t, 17>, Fp8Plan> fp8_products;
  /// Like `products`, for batched GEMMs (ops/gemm/batched_matmul.h).
  std::map<std::array<int64_t, 20>, BlasProduct> batched_products;
  /// Measured or loaded algorithms, with the keys of `products` (ops/gemm/product_search.h).
  std::map<std::array<int64_t, 17>, cublasLtMatmulAlgo_t> chosen;
};

}  // namespace hctr
