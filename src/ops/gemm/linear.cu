// GEMMs by cuBLASLt. The library is column-major, our tensors are row-major. A row-major matrix has the memory layout
// of its column-major transpose. The code therefore computes c = op(a) op(b) as c^T = op(b)^T op(a)^T, with b first and
// without a copy. A bias per column of c is a bias per row of c^T; the library adds such a bias in its epilogue.
#include "ops/gemm/linear.h"

#include <optional>

#include "core/device/cuda_libraries.cuh"
#include "core/device/launch.cuh"
#include "ops/common/add.h"
#include "ops/gemm/blas_proposals.cuh"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/few_rows.h"
#include "ops/gemm/fused_product.h"
#include "ops/gemm/linear_dropout.h"
#include "ops/gemm/one_column.cuh"
#include "ops/gemm/tf32_operands.cuh"
#include "ops/gemm/tf32_split.h"
#include "ops/gemm/transposed_weights.cuh"

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
      throw Error(Kind::bug, cat("no GEMM of ", name_of(dtype)));
  }
}

struct Problem {
  Tensor a, b, c;
  Transpose of_a, of_b;
  std::optional<Tensor> bias;
  bool relu;
  bool tf32 = false, adds = false;  // tf32: round operands to TF32; adds: add the result to c
  std::optional<Tensor> addend{};   // a matrix that is added instead of a bias

  std::array<int64_t, 17> key() const {
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
            cuda::alignment(a.bytes()),
            cuda::alignment(b.bytes()),
            cuda::alignment(c.bytes()),
            bias.has_value(),
            bias || addend ? cuda::alignment((bias ? bias : addend)->bytes()) : 0,
            relu + 2 * tf32 + 4 * adds + 8 * (addend ? addend->row_stride() : 0)};
  }
};

/// A view of t with `rows` more rows and `columns` more columns, where the memory after t's elements contains zeros.
Tensor widened(const Tensor& t, int64_t rows, int64_t columns) {
  return Tensor(t.bytes(), TensorSpec(t.dtype(), {t.dim(0) + rows, t.dim(1) + columns}, t.row_stride()), t.device());
}

/// Number of zeros that pad one extent of a GEMM to a multiple of 16 bytes. Returns 0 if one of the two tensors with
/// this extent has too few zeros. Without padding, the library uses kernels with single-element loads, which are five
/// times slower.
int64_t zeros_for(int64_t extent, DType dtype, int64_t held, int64_t held_by_other) {
  const int64_t unit = 16 / static_cast<int64_t>(size_of(dtype)), missing = (extent + unit - 1) / unit * unit - extent;
  return missing <= held && missing <= held_by_other ? missing : 0;
}

void describe(cublasLtMatrixLayout_t layout, const Tensor& t) {
  HCTR_CHECK(cublasLtMatrixLayoutInit(layout, library_type(t.dtype()), static_cast<uint64_t>(t.dim(1)),
                                      static_cast<uint64_t>(t.dim(0)), t.row_stride()));
}

/// Describes the GEMM. Uses the algorithm chosen for the GEMM, or else the library's first proposal, which is
/// deterministic.
void plan(Runtime& runtime, const Problem& p, BlasProduct& product) {
  HCTR_CHECK(cublasLtMatmulDescInit(&product.operation, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                    CUDA_R_32F));
  cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSA, p.of_b == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_TRANSB, p.of_a == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.bias) {
    cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
              p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
    cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias->bytes()));
  }
  describe(&product.first, p.b);
  describe(&product.second, p.a);
  describe(&product.result, p.c);
  const Tensor& addend = p.addend ? *p.addend : p.c;
  describe(&product.addend, addend);

  auto& libraries = *runtime.cuda_libraries();
  const auto chosen = libraries.chosen.find(p.key());
  if (chosen != libraries.chosen.end() && cuda::accepts(libraries, product, chosen->second)) {
    product.algorithm = chosen->second;
    return;
  }
  cublasLtMatmulHeuristicResult_t found{};
  if (cuda::propose(libraries, product,
                    {cuda::alignment(p.a.bytes()), cuda::alignment(p.b.bytes()), cuda::alignment(p.c.bytes()),
                     cuda::alignment(addend.bytes())},
                    {&found, 1}) == 0)
    throw Error(Kind::device, "cuBLAS has no algorithm for this GEMM");
  product.algorithm = found.algo;
}

/// Returns the same GEMM with extents rounded up to multiples of 16 bytes. An extent is rounded up only if the tensors
/// have enough rows or columns of zeros beyond it.
Problem widened(Problem p) {
  const bool t_a = p.of_a == Transpose::yes, t_b = p.of_b == Transpose::yes;
  const TensorSpec &a = p.a.spec(), &b = p.b.spec(), &c = p.c.spec(), &addend = p.addend ? p.addend->spec() : c;
  const int64_t m =
      zeros_for(p.c.dim(0), a.dtype, t_a ? a.zero_columns : a.zero_rows, std::min(c.zero_rows, addend.zero_rows));
  // With padded columns, the library would read past the end of the bias.
  const int64_t n = p.bias ? 0
                           : zeros_for(p.c.dim(1), a.dtype, t_b ? b.zero_rows : b.zero_columns,
                                       std::min(c.zero_columns, addend.zero_columns));
  const int64_t k =
      zeros_for(p.a.dim(t_a ? 0 : 1), a.dtype, t_a ? a.zero_rows : a.zero_columns, t_b ? b.zero_columns : b.zero_rows);
  const Tensor wide_a = t_a ? widened(p.a, k, m) : widened(p.a, m, k);
  const Tensor wide_b = t_b ? widened(p.b, n, k) : widened(p.b, k, n);
  if (p.addend) p.addend = widened(*p.addend, m, n);
  return {wide_a, wide_b, widened(p.c, m, n), p.of_a, p.of_b, p.bias, p.relu, p.tf32, p.adds, p.addend};
}

/// op(t) as a vector, where op(t) has only one column or one row.
template <class T>
cuda::Strided<T> vector_of(const Tensor& t) {
  return {t.data<const T>(), t.dim(1) == 1 ? t.row_stride() : 1};
}

/// The GEMMs of a layer with one output: dgrad (outer), wgrad (column_sums), and forward (rows).
enum class VectorProduct { none, outer, column_sums, rows };

VectorProduct vector_product(const Problem& p, size_t workspace_bytes) {
  const bool t_a = p.of_a == Transpose::yes;
  if (p.c.elements() == 0) return VectorProduct::none;
  // the vector kernels would round the result before the addend is added
  if (p.addend && p.c.dtype() != DType::f32) return VectorProduct::none;
  if (p.a.dim(t_a ? 0 : 1) == 1 && !p.bias) return VectorProduct::outer;
  if (p.c.dim(1) != 1 || p.of_b == Transpose::yes) return VectorProduct::none;
  const auto needed = static_cast<size_t>(cuda::kWeightedParts * p.c.dim(0)) * sizeof(float);
  if (t_a) return !p.bias && needed <= workspace_bytes ? VectorProduct::column_sums : VectorProduct::none;
  return p.c.dtype() == p.a.dtype() ? VectorProduct::rows : VectorProduct::none;
}

void multiply_vector(Context& ctx, const Problem& p, VectorProduct product, float* workspace) {
  const auto run = [&]<class T, class Out>() {
    if (product == VectorProduct::outer)
      return cuda::outer_product(ctx, vector_of<T>(p.a), vector_of<T>(p.b), p.c.view<Out, 2>());
    if (product == VectorProduct::column_sums)
      return cuda::weighted_column_sums(ctx, p.a.view<const T, 2>(), vector_of<T>(p.b), workspace, p.c.view<Out, 2>());
    if constexpr (std::is_same_v<T, Out>)
      cuda::row_products(ctx, p.a.view<const T, 2>(), vector_of<T>(p.b), p.bias ? p.bias->data<const T>() : nullptr,
                         p.relu, p.c.view<T, 2>());
  };
  dispatch_float(p.a.dtype(), [&]<class T>() {
    if (p.c.dtype() == p.a.dtype()) return run.template operator()<T, T>();
    if constexpr (sizeof(T) == 2) run.template operator()<T, float>();
  });
}

/// The workspace of the context's stream.
Buffer& workspace_of(Context& ctx) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  if (ctx.stream().handle == ctx.runtime().compute_stream().handle) return libraries.blas_workspace;
  HCTR_EXPECT(libraries.side_streams.contains(ctx.stream().handle),
              "a GEMM must run on the compute stream or on a stream registered with add_product_stream()");
  return *libraries.side_workspace;
}

void multiply_planned(Context& ctx, const Problem& p) {
  Runtime& runtime = ctx.runtime();
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
  if (p.bias)
    cuda::set(&product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias->bytes()));
  const float one = 1, of_addend = p.adds || p.addend ? 1 : 0;
  const Tensor& addend = p.addend ? *p.addend : p.c;
  Buffer& workspace = workspace_of(ctx);
  HCTR_CHECK(cublasLtMatmul(libraries.blas, &product.operation, &one, p.b.bytes(), &product.first, p.a.bytes(),
                            &product.second, &of_addend, addend.bytes(), &product.addend, p.c.bytes(), &product.result,
                            &product.algorithm, workspace.data(), workspace.bytes(),
                            hctr::cuda::stream_of(ctx.stream())));
  if (runtime.options().sync_launches) ctx.stream().synchronize();
}

/// Whether an f32 GEMM is computed as TF32x3, with operands split into TF32 values.
bool is_split(const Runtime& runtime, const Problem& p) {
  if (!runtime.options().tf32x3 || p.a.dtype() != DType::f32 || hctr::cuda::compute_capability() < 80) return false;
  return split_product_gains(p.c.dim(0), p.c.dim(1), p.a.dim(p.of_a == Transpose::yes ? 0 : 1));
}

/// Computes the contributions of the operands' small parts first, then adds the GEMM of the big parts.
void multiply_split(Context& ctx, const Problem& p) {
  HCTR_EXPECT(ctx.stream().handle == ctx.runtime().compute_stream().handle,
              "a GEMM of split operands must run on the compute stream, which owns their memory");
  const auto parts = cuda::split_operands(ctx, p.a, p.of_a == Transpose::yes, p.b, p.of_b == Transpose::yes);
  multiply_planned(ctx, {parts.first.both, parts.second.both, p.c, p.of_a, p.of_b, {}, false, true, false, p.addend});
  multiply_planned(ctx, {parts.first.big, parts.second.big, p.c, p.of_a, p.of_b, p.bias, p.relu, true, true});
}

/// Whether a GEMM is small enough for one of our kernels. Such a GEMM takes only a few microseconds, so an early start
/// (hctr::cuda::start_early()) matters; the library's kernels cannot start early.
bool gains_by_early_start(const Tensor& result) {
  constexpr int64_t kMostRows = 2048, kLeastColumns = 64;
  return result.dim(0) <= kMostRows && result.dim(1) >= kLeastColumns;
}

/// Whether linear() with ReLU runs as hopper::linear_relu(). For f32, that kernel needs transposed weights.
bool takes_linear_relu(Context& ctx, const Tensor& x, const Tensor& w, const std::optional<Tensor>& transposed,
                       const Tensor& y) {
  const bool held = ctx.multiprocessors() > 0, gains = held || gains_by_early_start(y);
  if (size_of(y.dtype()) == 2) return gains && hopper::takes_fused_product(ctx, {x, w}, y);
  const bool worth_transposing = held && x.dim(0) >= kLeastRowsOfTransposed;
  return (transposed ? gains : worth_transposing) && hopper::takes_fused_product(ctx, {x}, y);
}

void run_gemm(Context& ctx, const char* name, const Problem& asked) {
  Problem p = widened(asked);
  if (p.c.elements() == 0) return;
  const auto what = [&] {
    return cat(name, " of ", to_string(p.a.shape()), " and ", to_string(p.b.shape()), ", ", name_of(p.a.dtype()),
               ", row strides ", p.a.row_stride(), " ", p.b.row_stride(), " ", p.c.row_stride());
  };
  in_context(what, [&] {
    Runtime& runtime = ctx.runtime();
    Buffer& workspace = workspace_of(ctx);
    if (const auto product = vector_product(asked, workspace.bytes()); product != VectorProduct::none) {
      multiply_vector(ctx, asked, product, reinterpret_cast<float*>(workspace.data()));
      if (asked.addend) ops::add(ctx, {*asked.addend, asked.c}, asked.c);
      return;
    }
    if (is_split(runtime, p)) return multiply_split(ctx, p);
    p.tf32 = p.a.dtype() == DType::f32 && runtime.options().tf32;
    multiply_planned(ctx, p);
  });
}

}  // namespace

void cuda::matmul(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c) {
  // Only the compute stream has memory for transposed weights.
  const bool can_transpose = ctx.stream().handle == ctx.runtime().compute_stream().handle;
  const F32Use use = of_a == Transpose::yes   ? F32Use::weight_gradient
                     : of_b == Transpose::yes ? F32Use::transposed
                                              : F32Use::plain;
  if ((of_b == Transpose::no || can_transpose) &&
      hopper::takes_f32_product(ctx, use, {a, b, c}, c.dim(0), c.dim(1), a.dim(of_a == Transpose::yes ? 0 : 1)))
    return hopper::f32_matmul(ctx, a, of_a, b, of_b, c);
  if (of_a == Transpose::no && of_b == Transpose::yes && c.dtype() == a.dtype() && gains_by_early_start(c) &&
      hopper::takes_fused_product(ctx, {a, b}, c))
    return hopper::matmul_transposed(ctx, a, b, c);
  run_gemm(ctx, "matmul", {a, b, c, of_a, of_b, {}, false});
}

void cuda::matmul_plus(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor addend, Tensor c) {
  run_gemm(ctx, "matmul_plus", {a, b, c, of_a, of_b, {}, false, false, false, addend});
}

void cuda::add_product_stream(Context& ctx) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  if (!libraries.side_workspace) libraries.side_workspace.emplace(ctx.device(), libraries.blas_workspace.bytes());
  libraries.side_streams.insert(ctx.stream().handle);
}

void cuda::linear(Context& ctx, Tensor x, Tensor w, Tensor bias, Tensor y, bool relu,
                  std::optional<Tensor> transposed) {
  if (hopper::takes_few_rows(x, w, y)) return hopper::few_rows_linear(ctx, x, w, bias, relu, y);
  const auto transpose = [&] { return transposed ? *transposed : transposed_weights(ctx, w); };
  if (relu && takes_linear_relu(ctx, x, w, transposed, y))
    return hopper::linear_relu(ctx, x, y.dtype() == DType::f32 ? transpose() : w, bias, y);
  if (hopper::takes_f32_product(ctx, F32Use::plain, {x, w, y}, y.dim(0), y.dim(1), w.dim(0)))
    return hopper::f32_linear(ctx, x, w, bias, relu, y);
  // In TF32, the library's kernels are slower for untransposed weights.
  if (w.dim(1) > 1 && (transposed || takes_transposed_weights(ctx, x.dim(0), w)))
    return run_gemm(ctx, "linear", {x, transpose(), y, Transpose::no, Transpose::yes, bias, relu});
  run_gemm(ctx, "linear", {x, w, y, Transpose::no, Transpose::no, bias, relu});
}

}  // namespace hctr::ops
