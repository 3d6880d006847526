// Matrix products by cuBLASLt. The library is column-major, our tensors are row-major. The memory of a row-major matrix
// is that of its transpose in column-major order, so c = op(a) op(b) is computed as c^T = op(b)^T op(a)^T, with b first
// and no copy. A bias along the columns of c is one along the rows of c^T, which the library adds in its epilogue.
#include "ops/linear.h"

#include "device/cuda_libraries.cuh"
#include "device/launch.cuh"

namespace hctr::ops {
namespace {

cudaDataType_t library_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      throw Error(Kind::bug, cat("no matrix product of ", name_of(dtype)));
  }
}

/// The largest power of two up to 256 that divides the address.
uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

struct Problem {
  const Tensor &a, &b, &c;
  Transpose of_a, of_b;
  const Tensor* bias;

  std::array<int64_t, 16> key() const {
    return {a.dim(0),
            a.dim(1),
            a.row_stride(),
            b.dim(0),
            b.dim(1),
            b.row_stride(),
            c.row_stride(),
            of_a == Transpose::yes,
            of_b == Transpose::yes,
            static_cast<int64_t>(a.dtype()),
            static_cast<int64_t>(c.dtype()),
            alignment(a.bytes()),
            alignment(b.bytes()),
            alignment(c.bytes()),
            bias != nullptr,
            bias ? alignment(bias->bytes()) : 0};
  }
};

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  HCTR_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  HCTR_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

void describe(cublasLtMatrixLayout_t layout, const Tensor& t) {
  HCTR_CHECK(cublasLtMatrixLayoutInit(layout, library_type(t.dtype()), static_cast<uint64_t>(t.dim(1)),
                                      static_cast<uint64_t>(t.dim(0)), t.row_stride()));
}

/// Describes the product and chooses the first algorithm that the library proposes, which is always the same.
void plan(Runtime& runtime, const Problem& p, BlasProduct& product) {
  const bool tf32 = p.a.dtype() == DType::f32 && runtime.options().tf32;
  HCTR_CHECK(
      cublasLtMatmulDescInit(&product.operation, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.of_b == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.of_a == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias) {
    set(&product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(&product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias->bytes()));
  }
  describe(&product.first, p.b);
  describe(&product.second, p.a);
  describe(&product.result, p.c);

  cublasLtMatmulPreferenceOpaque_t preference;
  HCTR_CHECK(cublasLtMatmulPreferenceInit(&preference));
  set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<uint64_t>(runtime.cuda_libraries()->blas_workspace.bytes()));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.b.bytes()));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.a.bytes()));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.c.bytes()));
  set(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.c.bytes()));
  // If the sum over k is split, the partial sums are added in f32 and in order, not in the dtype of c.
  set(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  HCTR_CHECK(cublasLtMatmulAlgoGetHeuristic(runtime.cuda_libraries()->blas, &product.operation, &product.first,
                                            &product.second, &product.result, &product.result, &preference, 1, &found,
                                            &count));
  if (count == 0) throw Error(Kind::device, "cuBLAS knows no algorithm for this product");
  product.algorithm = found.algo;
}

void multiply(Context& ctx, const char* name, const Problem& p) {
  if (p.c.elements() == 0) return;
  const auto what = [&] {
    return cat(name, " of ", to_string(p.a.shape()), " and ", to_string(p.b.shape()), ", ", name_of(p.a.dtype()),
               ", row strides ", p.a.row_stride(), " ", p.b.row_stride(), " ", p.c.row_stride());
  };
  in_context(what, [&] {
    Runtime& runtime = ctx.runtime();
    HCTR_EXPECT(ctx.stream().handle == runtime.compute_stream().handle,
                "a matrix product on another stream than the compute stream would share its workspace");
    auto& libraries = *runtime.cuda_libraries();
    const auto [place, is_new] = libraries.products.try_emplace(p.key());
    BlasProduct& product = place->second;
    if (is_new) {
      try {
        plan(runtime, p, product);
      } catch (...) {
        libraries.products.erase(place);
        throw;
      }
    }
    if (p.bias) set(&product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias->bytes()));
    const float one = 1, zero = 0;
    HCTR_CHECK(cublasLtMatmul(libraries.blas, &product.operation, &one, p.b.bytes(), &product.first, p.a.bytes(),
                              &product.second, &zero, p.c.bytes(), &product.result, p.c.bytes(), &product.result,
                              &product.algorithm, libraries.blas_workspace.data(), libraries.blas_workspace.bytes(),
                              hctr::cuda::stream_of(ctx.stream())));
    if (runtime.options().sync_launches) ctx.stream().synchronize();
  });
}

}  // namespace

void cuda::matmul(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c) {
  multiply(ctx, "matmul", {a, b, c, of_a, of_b, nullptr});
}

void cuda::linear(Context& ctx, Tensor x, Tensor w, Tensor bias, Tensor y) {
  multiply(ctx, "linear", {x, w, y, Transpose::no, Transpose::no, &bias});
}

}  // namespace hctr::ops
