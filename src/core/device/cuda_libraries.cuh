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
  cublasLtMatrixLayoutOpaque_t first, second, result, addend;  ///< addend: `result` where there is no other
  cublasLtMatmulAlgo_t algorithm;
};

/// A product in FP8, and whether it adds the bias.
struct Fp8Plan {
  BlasProduct product;
  bool epilogue;
};

/// Used only by the thread of its rank.
struct Runtime::CudaLibraries {
  static constexpr int kMostPieces = 1024;  ///< of a product
  explicit CudaLibraries(int index);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;
  cublasLtHandle_t blas = nullptr;
  Buffer blas_workspace;  ///< shared by all products on the compute stream of the Runtime
  /// That of all products on other streams, whose handles these are (ops::add_product_stream). It has the same size, so
  /// that the library chooses the same algorithms.
  std::optional<Buffer> side_workspace;
  std::set<void*> side_streams;
  /// The next tile of the product of ours that runs on the compute stream (ops/gemm/fused_product.cuh); 0 between
  /// products.
  Buffer tile_counter;
  /// Which parts of sums are there, of a product of ours on the compute stream, and of one on another; 0 between
  /// products (ops/gemm/tile_division.cuh).
  Buffer piece_flags;
  /// Other forms of the operands of the product that runs (ops/gemm/operand_memory.cuh). Recorded steps keep its
  /// address.
  std::optional<ReservedBuffer> operands;
  /// The products so far, by everything that their algorithm depends on: equal products always use the same algorithm.
  std::map<std::array<int64_t, 17>, BlasProduct> products;
  /// Those in FP8, by their own keys (ops/gemm/fp8_product.cu).
  std::map<std::array<int64_t, 17>, Fp8Plan> fp8_products;
  /// The same for products of many matrices (ops/gemm/batched_matmul.h).
  std::map<std::array<int64_t, 20>, BlasProduct> batched_products;
  /// Algorithms that were measured, or read from a file, by the same key (ops/gemm/product_search.h).
  std::map<std::array<int64_t, 17>, cublasLtMatmulAlgo_t> chosen;
};

}  // namespace hctr
