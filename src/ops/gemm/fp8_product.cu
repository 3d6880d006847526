// FP8 GEMMs by cuBLASLt, which requires the summed dimension to be contiguous in both operands: a b^T of row-major
// matrices. The library is column-major. The code therefore computes c^T = b a^T, with b as the first, transposed
// operand.
#include "ops/gemm/fp8_product.h"

#include <array>

#include "core/device/cuda_libraries.cuh"
#include "ops/common/element_loops.cuh"
#include "ops/gemm/blas_proposals.cuh"

namespace hctr::ops {
namespace {

constexpr int kLeastCapability = 89;

/// A GEMM whose extents are padded if the tensors have memory for the padding.
struct Fp8Problem {
  const Fp8Matrix& a;
  const Fp8Matrix& b;
  Tensor c;
  int64_t rows, columns, depth;
  std::optional<Tensor> bias;
  bool relu;

  std::array<int64_t, 17> key() const {
    return {rows,
            columns,
            depth,
            c.row_stride(),
            static_cast<int64_t>(a.format),
            static_cast<int64_t>(b.format),
            static_cast<int64_t>(c.dtype()),
            cuda::alignment(a.codes),
            cuda::alignment(b.codes),
            cuda::alignment(c.bytes()),
            bias ? cuda::alignment(bias->bytes()) : 0,
            relu};
  }
};

cudaDataType_t library_type(Fp8Format format) { return format == Fp8Format::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2; }

template <class T>
void set_pointer(BlasProduct& product, cublasLtMatmulDescAttributes_t attribute, const T* pointer) {
  cuda::set(&product.operation, attribute, static_cast<const void*>(pointer));
}

void describe_fp8(const Fp8Problem& p, bool with_epilogue, BlasProduct& product) {
  HCTR_CHECK(cublasLtMatmulDescInit(&product.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (with_epilogue) {
    cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
              p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
    set_pointer(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->bytes());
    cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
  }
  set_pointer(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p.b.scale->inverse);
  set_pointer(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p.a.scale->inverse);
  const auto layout = [](cublasLtMatrixLayout_t of, cudaDataType_t type, int64_t rows, int64_t columns,
                         int64_t stride) {
    HCTR_CHECK(cublasLtMatrixLayoutInit(of, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), stride));
  };
  layout(&product.first, library_type(p.b.format), p.depth, p.columns, p.depth);
  layout(&product.second, library_type(p.a.format), p.depth, p.rows, p.depth);
  layout(&product.result, p.c.dtype() == DType::f32 ? CUDA_R_32F : CUDA_R_16BF, p.columns, p.rows, p.c.row_stride());
  product.addend = product.result;
}

bool find_algorithm(Runtime::CudaLibraries& libraries, const Fp8Problem& p, BlasProduct& product) {
  cublasLtMatmulHeuristicResult_t found{};
  if (cuda::propose(libraries, product,
                    {cuda::alignment(p.a.codes), cuda::alignment(p.b.codes), cuda::alignment(p.c.bytes())},
                    {&found, 1}) == 0)
    return false;
  product.algorithm = found.algo;
  return true;
}

/// Uses the library's first proposal, which is deterministic. Prefers an algorithm with a bias epilogue if there is a
/// bias.
void plan_fp8(Runtime::CudaLibraries& libraries, const Fp8Problem& p, Fp8Plan& plan) {
  plan.epilogue = p.bias.has_value();
  describe_fp8(p, plan.epilogue, plan.product);
  if (find_algorithm(libraries, p, plan.product)) return;
  if (plan.epilogue) {
    plan.epilogue = false;
    describe_fp8(p, false, plan.product);
    if (find_algorithm(libraries, p, plan.product)) return;
  }
  throw Error(Kind::device,
              "cuBLAS has no FP8 algorithm for this GEMM; \"mixed_precision\": \"bf16\" does not "
              "need FP8");
}

/// c = c + bias, or max(c + bias, 0), if the library has no bias epilogue. Rounds a second time.
template <int V>
__global__ void add_bias_kernel(View<BFloat16, 2> c, const BFloat16* bias, bool relu) {
  const int64_t per_row = cuda::chunks_per_row(c.size(1), V);
  for (int64_t i = cuda::thread_index(); i < c.size(0) * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, c.size(0), per_row, V);
    const int64_t left = c.size(1) - at.column;
    float sums[V] = {}, add[V] = {};
    cuda::read<V>(c.row(at.row) + at.column, left, sums);
    cuda::read<V>(bias + at.column, left, add);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      sums[j] += add[j];
      if (relu) sums[j] = sums[j] < 0 ? 0 : sums[j];  // a NaN stays NaN
    }
    cuda::write<V>(c.row(at.row) + at.column, left, sums);
  }
}

void add_bias(Context& ctx, const Tensor& c, const Tensor& bias, bool relu) {
  constexpr int V = 8;
  const auto view = c.view<BFloat16, 2>();
  const auto* const add = bias.data<const BFloat16>();
  if (cuda::takes_packs<V>(view) && cuda::takes_packs<V>(View<const BFloat16, 2>{add, {1, c.dim(1)}, c.dim(1)}))
    cuda::launch(ctx, "add_bias", cuda::grid_for(c.dim(0) * cuda::chunks_per_row(c.dim(1), V)), add_bias_kernel<V>,
                 view, add, relu);
  else
    cuda::launch(ctx, "add_bias", cuda::grid_for(c.elements()), add_bias_kernel<1>, view, add, relu);
}

/// Returns the extent padded to a multiple of `unit`. Returns the unpadded extent if the tensor has too few zeros for
/// the padding. `held`: number of zeros that the tensor has.
int64_t widened(int64_t extent, int64_t unit, int64_t held) {
  const int64_t wide = (extent + unit - 1) / unit * unit;
  return wide - extent <= held ? wide : extent;
}

void multiply_fp8(Context& ctx, const Fp8Problem& p) {
  Runtime& runtime = ctx.runtime();
  HCTR_EXPECT(ctx.stream().handle == runtime.compute_stream().handle,
              "a GEMM that uses the workspace of the compute stream must run on the compute stream");
  auto& libraries = *runtime.cuda_libraries();
  const auto [place, is_new] = libraries.fp8_products.try_emplace(p.key());
  if (is_new) {
    try {
      plan_fp8(libraries, p, place->second);
    } catch (...) {
      libraries.fp8_products.erase(place);
      throw;
    }
  }
  auto& [product, epilogue] = place->second;
  if (epilogue) set_pointer(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->bytes());
  set_pointer(product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p.b.scale->inverse);
  set_pointer(product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p.a.scale->inverse);
  const float one = 1, zero = 0;
  HCTR_CHECK(cublasLtMatmul(libraries.blas, &product.operation, &one, p.b.codes, &product.first, p.a.codes,
                            &product.second, &zero, p.c.bytes(), &product.result, p.c.bytes(), &product.result,
                            &product.algorithm, libraries.blas_workspace.data(), libraries.blas_workspace.bytes(),
                            hctr::cuda::stream_of(ctx.stream())));
  if (runtime.options().sync_launches) ctx.stream().synchronize();
  if (p.bias && !epilogue) add_bias(ctx, p.c, *p.bias, p.relu);
}

}  // namespace

void cuda::expect_fp8(Context& ctx) {
  const int capability = hctr::cuda::compute_capability();
  if (capability >= kLeastCapability) return;
  throw Error(Kind::device,
              cat("/solver/mixed_precision: \"fp8\" needs a GPU of compute capability 8.9 or more (Ada, Hopper and "
                  "later), and ",
                  hctr::cuda::describe(ctx.device().index), " has ", capability / 10, ".", capability % 10,
                  "; use \"bf16\" on this GPU"));
}

void cuda::fp8_product(Context& ctx, const Fp8Matrix& a, const Fp8Matrix& b, std::optional<Tensor> bias, bool relu,
                       Tensor c) {
  if (c.elements() == 0) return;
  const Fp8Problem problem{a,
                           b,
                           c,
                           widened(c.dim(0), 8, c.spec().zero_rows),
                           widened(c.dim(1), 16, c.spec().zero_columns),
                           fp8_padded(a.columns),
                           bias,
                           relu};
  const auto what = [&] {
    return cat("FP8 GEMM of [", a.rows, ",", a.columns, "] and [", b.rows, ",", b.columns, "] transposed, row ",
               "stride ", c.row_stride());
  };
  in_context(what, [&] { multiply_fp8(ctx, problem); });
}

}  // namespace hctr::ops
