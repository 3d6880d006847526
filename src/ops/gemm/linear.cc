#include "ops/gemm/linear.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/cuda_runtime_calls.h"
#include "core/device/profiler.h"
#include "core/device/scoring_scope.h"
#include "ops/common/activation_rules.h"
#include "ops/common/copy.h"
#include "ops/common/element_loops.h"
#include "ops/common/fill.h"
#include "ops/gemm/blas.h"
#include "ops/gemm/ordered_product.h"
#include "ops/gemm/packed_weights.h"
#include "ops/gemm/product_parts.h"
#include "ops/gemm/transposed_weights.h"

namespace hctr::ops {
namespace {

int64_t rows_of_op(const Tensor& t, Transpose how) { return how == Transpose::no ? t.dim(0) : t.dim(1); }
int64_t columns_of_op(const Tensor& t, Transpose how) { return how == Transpose::no ? t.dim(1) : t.dim(0); }

double flops_of(const Tensor& a, const Tensor& c, Transpose of_a) {
  return 2.0 * static_cast<double>(c.elements()) * static_cast<double>(columns_of_op(a, of_a));
}

void check_product(Context& ctx, const char* what, const Tensor& a, Transpose of_a, const Tensor& b, Transpose of_b,
                   const Tensor& c) {
  for (const Tensor* t : {&a, &b, &c}) {
    expect_on(what, ctx.device(), *t);
    HCTR_EXPECT(t->rank() == 2, what, ": expected a matrix, found shape ", to_string(t->shape()));
  }
  expect_alike(what, {a, b});
  HCTR_EXPECT(c.dtype() == a.dtype() || (c.dtype() == DType::f32 && size_of(a.dtype()) == 2), what, ": product of ",
              name_of(a.dtype()), " as ", name_of(c.dtype()));
  HCTR_EXPECT(columns_of_op(a, of_a) == rows_of_op(b, of_b), what, ": ", columns_of_op(a, of_a), " columns times ",
              rows_of_op(b, of_b), " rows");
  expect_shape(what, c, {rows_of_op(a, of_a), columns_of_op(b, of_b)});
}

}  // namespace

void matmul(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c) {
  check_product(ctx, "matmul", a, of_a, b, of_b, c);
  if (a.elements() == 0) return fill(ctx, 0, c);  // every sum is empty
  count_flops(ctx, flops_of(a, c, of_a));
  HCTR_ON_DEVICE(ctx, matmul(ctx, a, of_a, b, of_b, c));
}

void matmul_plus(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor addend, Tensor c) {
  check_product(ctx, "matmul_plus", a, of_a, b, of_b, c);
  expect_on("matmul_plus", ctx.device(), addend);
  expect_alike("matmul_plus", {a, addend, c});
  expect_shape("matmul_plus addend", addend, c.shape());
  if (a.elements() == 0) return copy(ctx, addend, c);  // every sum is empty
  count_flops(ctx, flops_of(a, c, of_a));
  HCTR_ON_DEVICE(ctx, matmul_plus(ctx, a, of_a, b, of_b, addend, c));
}

std::optional<MultiprocessorShares> shares_beside_lookup(const std::optional<GpuTraits>& gpu, DType dtype, bool tf32,
                                                         int64_t rows) {
  if (!gpu || !gpu->is_hopper()) return std::nullopt;
  const int products = gpu->multiprocessors / 4;
  const bool held = size_of(dtype) == 2 || (tf32 && rows >= kLeastRowsOfTransposed);
  if (!held || products == 0) return std::nullopt;
  return MultiprocessorShares{products, gpu->multiprocessors - products};
}

bool keeps_gpu_busy(const std::optional<GpuTraits>& gpu, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64;
  return gpu && 2 * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile) > gpu->multiprocessors;
}

void add_product_stream(Context& ctx) { HCTR_ON_DEVICE(ctx, add_product_stream(ctx)); }

void linear(Context& ctx, Tensor x, Tensor w, Tensor bias, Tensor y, bool relu, std::optional<Tensor> transposed) {
  check_product(ctx, "linear", x, Transpose::no, w, Transpose::no, y);
  HCTR_EXPECT(w.dim(0) > 0, "linear without inputs");
  expect_shape("linear bias", bias, {w.dim(1)});
  expect_alike("linear", {x, bias, y});
  HCTR_EXPECT(bias.dense(), "linear() needs a dense bias, found a strided one");
  if (transposed) expect_transposed_weights("linear", w, *transposed);
  count_flops(ctx, flops_of(x, y, Transpose::no));
  HCTR_ON_DEVICE(ctx, linear(ctx, x, w, bias, y, relu, transposed));
}

namespace {

/// op(t) of a matrix: element (i, j) is at data[i * row + j * column].
template <class T>
struct Operand {
  const T* data;
  Transpose how;
  int64_t stride, row, column;
  Operand(const T* data_, Transpose how_, int64_t stride_)
      : data(data_),
        how(how_),
        stride(std::max<int64_t>(1, stride_)),
        row(how == Transpose::no ? stride : 1),
        column(how == Transpose::no ? 1 : stride) {}
  Operand(const Tensor& t, Transpose how_) : Operand(t.data<const T>(), how_, t.row_stride()) {}
  /// The operand from row i and column j on.
  Operand at(int64_t i, int64_t j) const {
    Operand part = *this;
    part.data += i * row + j * column;
    return part;
  }
};

struct PartSize {
  int64_t rows, columns, depth;
};

/// The epilogue of a GEMM: adds `addend` unless it is null; then max(., 0) if `relu`.
template <class T>
struct Epilogue {
  const T* addend;
  int64_t stride;  ///< elements between rows of the addend; 0: one row for all
  bool relu;
  bool ordered = false;  ///< Context::ordered_products()
};

/// Computes one part of c by ordered_product() or BLAS.
template <class T>
  requires std::is_same_v<T, float> || std::is_same_v<T, double>
void multiply_part(Operand<T> a, Operand<T> b, PartSize size, Epilogue<T> end, T* c, int64_t c_stride) {
  if constexpr (std::is_same_v<T, float>)
    if (end.ordered)
      return ordered_product({a.data, a.row, a.column}, {b.data, b.row, b.column}, {end.addend, end.stride, end.relu},
                             c, c_stride, size.rows, size.columns, size.depth);
  for (int64_t i = 0; end.addend && i < size.rows; ++i)
    std::copy_n(end.addend + i * end.stride, size.columns, c + i * c_stride);
  gemm(size.rows, size.columns, size.depth, {a.data, a.stride, a.how}, {b.data, b.stride, b.how},
       end.addend ? T(1) : T(0), {c, c_stride});
  if (!end.relu) return;
  for (int64_t i = 0; i < size.rows; ++i) {
    T* row = c + i * c_stride;
    HCTR_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < size.columns; ++j) row[j] = Relu{}.forward(row[j]);
  }
}

/// Returns an f32 copy of the first `rows` x `columns` elements of op(t), in the layout of t.
template <class T>
Operand<float> widened(Operand<T> t, int64_t rows, int64_t columns, std::vector<float>& memory) {
  if (t.how == Transpose::yes) std::swap(rows, columns);
  memory.resize(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = t.data + i * t.stride;
    float* to = memory.data() + i * columns;
    HCTR_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<float>(from[j]);
  }
  return Operand<float>(memory.data(), t.how, columns);
}

/// For dtypes that BLAS lacks: converts operands to f32, and rounds the f32 result once.
template <class T, class Out>
void multiply_part(Operand<T> a, Operand<T> b, PartSize size, Epilogue<T> end, Out* c, int64_t c_stride) {
  thread_local std::vector<float> left, right, sums, wide_addend;  // the next part reuses the memory
  sums.resize(static_cast<size_t>(size.rows * size.columns));
  wide_addend.clear();
  for (int64_t i = 0; end.addend && i < (end.stride > 0 ? size.rows : 1); ++i)
    for (int64_t j = 0; j < size.columns; ++j)
      wide_addend.push_back(static_cast<float>(end.addend[i * end.stride + j]));
  multiply_part(widened(a, size.rows, size.depth, left), widened(b, size.depth, size.columns, right), size,
                Epilogue<float>{end.addend ? wide_addend.data() : nullptr, end.stride > 0 ? size.columns : 0, end.relu,
                                end.ordered},
                sums.data(), size.columns);
  for (int64_t i = 0; i < size.rows; ++i) {
    const float* from = sums.data() + i * size.columns;
    Out* to = c + i * c_stride;
    HCTR_INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < size.columns; ++j) to[j] = static_cast<Out>(from[j]);
  }
}

/// c = op(a) op(b) + addend, or its positive part if `relu`; one part of c per task. The addend is null, a bias or a
/// matrix.
void run_gemm(Context& ctx, const Tensor& a, Transpose of_a, const Tensor& b, Transpose of_b, const Tensor* addend,
              bool relu, const Tensor& c) {
  const int64_t rows = c.dim(0), columns = c.dim(1), depth = columns_of_op(a, of_a);
  const int64_t addend_stride = addend && addend->rank() == 2 ? addend->row_stride() : 0;
  if (ctx.ordered_products() && a.dtype() == DType::f32) {
    const Operand<float> left(a, of_a), right(b, of_b);
    const ScoringRules* const rules = ScoringScope::rules();
    const PackedWeights* const packed = rules && of_b == Transpose::no ? rules->packed : nullptr;
    if (const auto panels = packed ? packed->find(b) : std::nullopt)
      return packed_product(ctx.threads(), {left.data, left.row, left.column}, *panels,
                            {addend ? addend->data<const float>() : nullptr, addend_stride, relu}, c.data<float>(),
                            c.row_stride(), rows, columns, depth);
    return ordered_product(ctx.threads(), {left.data, left.row, left.column}, {right.data, right.row, right.column},
                           {addend ? addend->data<const float>() : nullptr, addend_stride, relu}, c.data<float>(),
                           c.row_stride(), rows, columns, depth);
  }
  const bool joined = a.dtype() == DType::f32 && blas_rounds_alike();
  const ProductPart part =
      joined ? joined_product_tiles(rows, columns, depth, ctx.threads().threads()) : product_tile(rows, columns);
  const int64_t across = parts_of(columns, part.columns), parts = parts_of(rows, part.rows) * across;
  const auto run = [&]<class T, class Out>() {
    const Operand<T> left(a, of_a), right(b, of_b);
    ctx.threads().parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t number = first; number < last; ++number) {
        const int64_t i = number / across * part.rows, j = number % across * part.columns;
        multiply_part(left.at(i, 0), right.at(0, j),
                      {std::min(part.rows, rows - i), std::min(part.columns, columns - j), depth},
                      Epilogue<T>{addend ? addend->data<const T>() + i * addend_stride + j : nullptr, addend_stride,
                                  relu, ctx.ordered_products()},
                      c.data<Out>() + i * c.row_stride() + j, c.row_stride());
      }
    });
  };
  dispatch_real(a.dtype(), [&]<class T>() {
    if (c.dtype() == a.dtype()) return run.template operator()<T, T>();
    if constexpr (sizeof(T) == 2) run.template operator()<T, float>();
  });
}

}  // namespace

void cpu::matmul(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c) {
  run_gemm(ctx, a, of_a, b, of_b, nullptr, false, c);
}

void cpu::matmul_plus(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor addend, Tensor c) {
  run_gemm(ctx, a, of_a, b, of_b, &addend, false, c);
}

void cpu::add_product_stream(Context&) {}

void cpu::linear(Context& ctx, Tensor x, Tensor w, Tensor bias, Tensor y, bool relu, std::optional<Tensor>) {
  run_gemm(ctx, x, Transpose::no, w, Transpose::no, &bias, relu, y);
}

}  // namespace hctr::ops
