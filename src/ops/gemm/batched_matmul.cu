// Batched GEMMs of small matrices by cuBLASLt. A cuBLASLt call has one stride between matrices, but attention heads
// within rows need two strides. One call therefore computes one matrix of every row; there are `inner` calls. As in
// ops/gemm/linear.cu, a row-major GEMM is computed as the GEMM of the transposes, with b first.
#include "ops/gemm/batched_matmul.h"

#include <algorithm>
#include <array>

#include "core/device/cuda_libraries.cuh"
#include "core/device/launch.cuh"
#include "ops/gemm/blas_proposals.cuh"

namespace hctr::ops {
namespace {

// limited, because some cuBLASLt kernels need one grid dimension for the matrices
constexpr int64_t kMostInACall = 32768;

/// The matrices of one call: one matrix of each of `count` rows.
struct BatchedProblem {
  Matrices a, b, c;
  Transpose of_a, of_b;
  int64_t count;
  bool tf32;

  std::array<int64_t, 20> key() const {
    return {c.rows,
            c.columns,
            of_a == Transpose::no ? a.columns : a.rows,
            a.row_stride,
            b.row_stride,
            c.row_stride,
            stride_of(a),
            stride_of(b),
            stride_of(c),
            aligned(a),
            aligned(b),
            aligned(c),
            of_a == Transpose::yes,
            of_b == Transpose::yes,
            static_cast<int64_t>(c.tensor.dtype()),
            count,
            tf32};
  }
  static int64_t stride_of(const Matrices& m) { return m.tensor.row_stride(); }
  /// The common alignment of the addresses of all matrices in all rows.
  static uint32_t aligned(const Matrices& m) {
    const int64_t bytes = static_cast<int64_t>(size_of(m.tensor.dtype()));
    const auto all = reinterpret_cast<intptr_t>(m.tensor.bytes()) | (m.inner_stride * bytes) | (stride_of(m) * bytes);
    return cuda::alignment(reinterpret_cast<const void*>(all));
  }
};

void describe_batch(cublasLtMatrixLayout_t layout, const Matrices& m, int64_t count) {
  const DType dtype = m.tensor.dtype();
  const cudaDataType_t type = dtype == DType::f32 ? CUDA_R_32F : dtype == DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
  HCTR_CHECK(cublasLtMatrixLayoutInit(layout, type, static_cast<uint64_t>(m.columns), static_cast<uint64_t>(m.rows),
                                      m.row_stride));
  const auto matrices = static_cast<int32_t>(count);
  const int64_t stride = BatchedProblem::stride_of(m);
  HCTR_CHECK(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices, sizeof matrices));
  HCTR_CHECK(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
}

/// Uses cuBLASLt's first proposal, which is deterministic.
void plan_batch(Runtime::CudaLibraries& libraries, const BatchedProblem& p, BlasProduct& product) {
  HCTR_CHECK(cublasLtMatmulDescInit(&product.operation, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                    CUDA_R_32F));
  cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.of_b == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.of_a == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe_batch(&product.first, p.b, p.count);
  describe_batch(&product.second, p.a, p.count);
  describe_batch(&product.result, p.c, p.count);
  product.addend = product.result;
  cublasLtMatmulHeuristicResult_t found{};
  if (cuda::propose(libraries, product,
                    {BatchedProblem::aligned(p.a), BatchedProblem::aligned(p.b), BatchedProblem::aligned(p.c)},
                    {&found, 1}) == 0)
    throw Error(Kind::device, "cuBLAS has no algorithm for this GEMM");
  product.algorithm = found.algo;
}

void multiply_batch(Context& ctx, const BatchedProblem& p, int64_t first_row, float scale) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  const auto [place, is_new] = libraries.batched_products.try_emplace(p.key());
  BlasProduct& product = place->second;
  if (is_new) {
    try {
      plan_batch(libraries, p, product);
    } catch (...) {
      libraries.batched_products.erase(place);
      throw;
    }
  }
  const float none = 0;
  for (int64_t i = 0; i < p.c.inner; ++i) {
    const auto at = [&](const Matrices& m) {
      const int64_t elements = first_row * BatchedProblem::stride_of(m) + i * m.inner_stride;
      return m.tensor.bytes() + elements * static_cast<int64_t>(size_of(m.tensor.dtype()));
    };
    HCTR_CHECK(cublasLtMatmul(libraries.blas, &product.operation, &scale, at(p.b), &product.first, at(p.a),
                              &product.second, &none, at(p.c), &product.result, at(p.c), &product.result,
                              &product.algorithm, libraries.blas_workspace.data(), libraries.blas_workspace.bytes(),
                              hctr::cuda::stream_of(ctx.stream())));
  }
  if (ctx.runtime().options().sync_launches) ctx.stream().synchronize();
}

}  // namespace

void cuda::batched_matmul(Context& ctx, Matrices a, Transpose of_a, Matrices b, Transpose of_b, float scale,
                          Matrices c) {
  const int64_t rows = c.tensor.rows();
  if (rows * c.inner * c.rows * c.columns == 0) return;
  const auto what = [&] {
    return cat("products of ", rows, " x ", c.inner, " matrices [", c.rows, ",", c.columns, "], ",
               name_of(c.tensor.dtype()));
  };
  in_context(what, [&] {
    HCTR_EXPECT(ctx.stream().handle == ctx.runtime().compute_stream().handle,
                "a GEMM that uses the workspace of the compute stream must run on the compute stream");
    const bool tf32 = c.tensor.dtype() == DType::f32 && ctx.runtime().options().tf32;
    for (int64_t first = 0; first < rows; first += kMostInACall)
      multiply_batch(ctx, {a, b, c, of_a, of_b, std::min(kMostInACall, rows - first), tf32}, first, scale);
  });
}

}  // namespace hctr::ops
