#include "operands.h"

#include <algorithm>
#include <cmath>

#include "core/base/dtype.h"
#include "core/base/random.h"
#include "core/device/cuda_check.cuh"

namespace hctr::gemm_bench {

/// The findings of a check. `worst`: the largest error as a multiple of the tolerance.
struct Difference {
  unsigned long long wrong;
  unsigned int worst;  // the bits of the largest error, a nonnegative float
};

namespace {

constexpr int kThreads = 256, kTile = 64, kDepth = 16;

int blocks_for(int64_t items) { return static_cast<int>(std::min<int64_t>((items + kThreads - 1) / kThreads, 4096)); }

/// Uniform values in [-1, 1); zero in padding. kPositive: negative values are replaced by zero.
template <bool kPositive, class T>
__global__ void fill(T* to, int64_t rows, int columns, int64_t all_rows, int stride, uint64_t seed) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all_rows * stride;
       i += int64_t{gridDim.x} * blockDim.x) {
    const float value = static_cast<float>(mix64(seed + static_cast<uint64_t>(i)) >> 40) * 0x1p-23f - 1.0f;
    const bool padding = i % stride >= columns || i / stride >= rows;
    to[i] = static_cast<T>(padding || (kPositive && value < 0) ? 0.0f : value);
  }
}

/// c [m, n], whose element (i, j) is the sum over k of a[i step_a_row + k step_a_k] b[k step_b_k + j step_b_column].
template <class T>
__global__ void plain_gemm(const T* a, int64_t a_row, int64_t a_k, const T* b, int64_t b_k, int64_t b_column, int m,
                           int n, int depth, float* c) {
  __shared__ float of_a[kDepth][kTile + 1], of_b[kDepth][kTile + 1];
  const int thread = static_cast<int>(threadIdx.x), x = thread % 16, y = thread / 16;
  const int row = static_cast<int>(blockIdx.y) * kTile, column = static_cast<int>(blockIdx.x) * kTile;
  float sums[4][4] = {};
  for (int from = 0; from < depth; from += kDepth) {
    for (int i = thread; i < kTile * kDepth; i += kThreads) {
      // adjacent threads read adjacent memory
      const int ka = a_k == 1 ? i % kDepth : i / kTile, ra = a_k == 1 ? i / kDepth : i % kTile;
      const int kb = b_k == 1 ? i % kDepth : i / kTile, cb = b_k == 1 ? i / kDepth : i % kTile;
      of_a[ka][ra] =
          row + ra < m && from + ka < depth ? static_cast<float>(a[(row + ra) * a_row + (from + ka) * a_k]) : 0;
      of_b[kb][cb] = column + cb < n && from + kb < depth
                         ? static_cast<float>(b[(from + kb) * b_k + (column + cb) * b_column])
                         : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += of_a[k][y + 16 * i] * of_b[k][x + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (row + y + 16 * i < m && column + x + 16 * j < n)
        c[int64_t{row + y + 16 * i} * n + column + x + 16 * j] = sums[i][j];
}

__device__ void report(Difference* difference, float error, float tolerance) {
  if (error <= tolerance) return;  // false for NaN
  atomicAdd(&difference->wrong, 1ull);
  const float worst = error / tolerance;
  atomicMax(&difference->worst, __float_as_uint(worst == worst ? worst : 3e38f));
}

/// Compares with the result of the plain GEMM after its epilogue. `tolerance`: the permitted error of the sums; the
/// error of rounding to Result is permitted in addition.
template <Operator kOp, class T, class Result>
__global__ void compare(const Gemm gemm, const float* expected, float tolerance, Difference* difference) {
  constexpr float kRounding = std::is_same_v<Result, float> ? 1e-5f : std::is_same_v<Result, Half> ? 0x1p-10f : 0x1p-7f;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < int64_t{gemm.m} * gemm.n;
       i += int64_t{gridDim.x} * blockDim.x) {
    float value = expected[i];
    if constexpr (kOp == Operator::forward)
      value = fmaxf(value + static_cast<float>(static_cast<const T*>(gemm.bias)[i % gemm.n]), 0.0f);
    if constexpr (kOp == Operator::dgrad)
      value = static_cast<float>(static_cast<const T*>(gemm.y)[i]) > 0 ? gemm.factor * value : 0.0f;
    const float error = fabsf(static_cast<float>(static_cast<const Result*>(gemm.result)[i]) - value);
    report(difference, error, tolerance + kRounding * fabsf(value));
  }
}

/// Compares d_bias with the column sums of the result, in f64. One block per column.
template <class T>
__global__ void compare_sums(const Gemm gemm, float tolerance, Difference* difference) {
  __shared__ double sums[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t column = blockIdx.x;
  double sum = 0;
  for (int64_t row = thread; row < gemm.m; row += kThreads)
    sum += static_cast<double>(static_cast<float>(static_cast<const T*>(gemm.result)[row * gemm.n + column]));
  sums[thread] = sum;
  __syncthreads();
  if (thread > 0) return;
  for (int i = 1; i < kThreads; ++i) sum += sums[i];
  report(difference, fabsf(gemm.d_bias[column] - static_cast<float>(sum)), tolerance);
}

/// Calls f<T>() with the C++ type.
template <class Function>
void with_type(Type type, const Function& f) {
  if (type == Type::f16)
    f.template operator()<Half>();
  else
    f.template operator()<BFloat16>();
}

/// The size of a matrix in device memory; both extents are padded to 16 bytes.
size_t matrix_bytes(int rows, int columns, size_t size) {
  return static_cast<size_t>(row_stride(rows)) * static_cast<size_t>(row_stride(columns)) * size;
}

size_t result_bytes(Operator op, const Extents& gemm) {
  return matrix_bytes(gemm.m, gemm.n, op == Operator::wgrad ? sizeof(float) : 2);
}

}  // namespace

double flops_of(const Case& one) {
  double flops = 0;
  for (const Extents& gemm : one.gemms) flops += 2.0 * gemm.m * gemm.n * gemm.k;
  return flops;
}

std::string name_of(const Case& one) {
  const char* const op = one.op == Operator::forward ? "forward" : one.op == Operator::dgrad ? "dgrad" : "wgrad";
  return cat(op, one.type == Type::f16 ? " f16 " : " bf16 ", one.batch, " x ", one.name);
}

void* Operands::allocate(size_t bytes) {
  void* found = nullptr;
  HCTR_CHECK(cudaMalloc(&found, bytes));
  memory_.emplace_back(found);
  return found;
}

Operands::Operands(const Case& one) : case_(one) {
  size_t bytes = 0;
  for (const Extents& gemm : one.gemms)
    bytes += matrix_bytes(gemm.m, gemm.k, 2) + matrix_bytes(gemm.k, gemm.n, 2) + result_bytes(one.op, gemm);
  // Small sets stay in the L2 cache, as in a training step. Two large sets together exceed the L2 cache.
  sets_.resize(bytes < (size_t{32} << 20) ? 4 : 2);
  difference_ = static_cast<Difference*>(allocate(sizeof(Difference)));
  uint64_t seed = 0;
  with_type(one.type, [&]<class T>() {
    const auto filled = [&]<bool kPositive>(int rows, int columns) {
      T* const to = static_cast<T*>(allocate(matrix_bytes(rows, columns, sizeof(T))));
      const int64_t all_rows = row_stride(rows);
      const int stride = row_stride(columns);
      fill<kPositive><<<blocks_for(all_rows * stride), kThreads>>>(to, rows, columns, all_rows, stride, seed);
      HCTR_CHECK(cudaGetLastError());
      seed += uint64_t{1} << 40;
      return to;
    };
    const auto matrix = [&](int rows, int columns) { return filled.template operator()<false>(rows, columns); };
    for (std::vector<Gemm>& set : sets_)
      for (const Extents& e : one.gemms) {
        Gemm gemm{.m = e.m, .n = e.n, .k = e.k, .factor = 2};
        gemm.a = one.op == Operator::wgrad ? matrix(e.k, e.m) : matrix(e.m, e.k);
        gemm.b = one.op == Operator::dgrad ? matrix(e.n, e.k) : matrix(e.k, e.n);
        gemm.bias = matrix(1, e.n);
        if (one.op == Operator::dgrad) {
          gemm.y = filled.template operator()<true>(e.m, e.n);
          // at most one row of partial sums per 64 rows, and at most 256 columns of padding
          gemm.sums = static_cast<float*>(allocate(static_cast<size_t>((e.m + 63) / 64) * (e.n + 256) * sizeof(float)));
          gemm.d_bias = static_cast<float*>(allocate(static_cast<size_t>(e.n) * sizeof(float)));
        }
        gemm.result = allocate(result_bytes(one.op, e));
        set.push_back(gemm);
      }
    for (const Gemm& gemm : sets_[0]) {
      float* const c =
          static_cast<float*>(allocate(static_cast<size_t>(gemm.m) * static_cast<size_t>(gemm.n) * sizeof(float)));
      const int64_t m = row_stride(gemm.m), n = row_stride(gemm.n), k = row_stride(gemm.k);
      const bool a_turned = one.op == Operator::wgrad, b_turned = one.op == Operator::dgrad;
      const dim3 grid(static_cast<unsigned>((gemm.n + kTile - 1) / kTile),
                      static_cast<unsigned>((gemm.m + kTile - 1) / kTile));
      plain_gemm<<<grid, kThreads>>>(static_cast<const T*>(gemm.a), a_turned ? 1 : k, a_turned ? m : 1,
                                     static_cast<const T*>(gemm.b), b_turned ? 1 : n, b_turned ? k : 1, gemm.m, gemm.n,
                                     gemm.k, c);
      HCTR_CHECK(cudaGetLastError());
      expected_.push_back(c);
    }
  });
  HCTR_CHECK(cudaDeviceSynchronize());
}

void Operands::spoil() {
  for (size_t i = 0; i < case_.gemms.size(); ++i) {
    const Gemm& gemm = sets_[0][i];
    HCTR_CHECK(cudaMemset(gemm.result, 0xff, result_bytes(case_.op, case_.gemms[i])));
    if (gemm.d_bias) HCTR_CHECK(cudaMemset(gemm.d_bias, 0xff, static_cast<size_t>(gemm.n) * sizeof(float)));
  }
  HCTR_CHECK(cudaDeviceSynchronize());
}

std::string Operands::check() {
  HCTR_CHECK(cudaMemset(difference_, 0, sizeof(Difference)));
  with_type(case_.type, [&]<class T>() {
    for (size_t i = 0; i < expected_.size(); ++i) {
      const Gemm& gemm = sets_[0][i];
      // The operands have a variance of 1/3. Tensor cores may truncate each of the k / 16 additions.
      const float depth = static_cast<float>(gemm.k), size = std::sqrt(depth) / 3;
      const float tolerance = 1e-4f * size * (1 + depth / 1024);
      const int blocks = blocks_for(int64_t{gemm.m} * gemm.n);
      if (case_.op == Operator::forward)
        compare<Operator::forward, T, T><<<blocks, kThreads>>>(gemm, expected_[i], tolerance, difference_);
      else if (case_.op == Operator::dgrad)
        compare<Operator::dgrad, T, T><<<blocks, kThreads>>>(gemm, expected_[i], gemm.factor * tolerance, difference_);
      else
        compare<Operator::wgrad, T, float><<<blocks, kThreads>>>(gemm, expected_[i], tolerance, difference_);
      HCTR_CHECK(cudaGetLastError());
      if (case_.op == Operator::dgrad) {
        const float of_sums = 1e-4f * gemm.factor * size * std::sqrt(static_cast<float>(gemm.m));
        compare_sums<T><<<gemm.n, kThreads>>>(gemm, of_sums, difference_);
        HCTR_CHECK(cudaGetLastError());
      }
    }
  });
  Difference found{};
  HCTR_CHECK(cudaMemcpy(&found, difference_, sizeof found, cudaMemcpyDeviceToHost));
  if (found.wrong == 0) return "";
  float worst = 0;
  static_assert(sizeof worst == sizeof found.worst);
  std::copy_n(reinterpret_cast<const char*>(&found.worst), sizeof worst, reinterpret_cast<char*>(&worst));
  return cat(found.wrong, " wrong elements, the worst by ", worst, " times the tolerance");
}

}  // namespace hctr::gemm_bench
