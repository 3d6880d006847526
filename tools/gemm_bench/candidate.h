// One implementation of an operator that the benchmark compares: one of our kernels, or one CUTLASS configuration.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

namespace hctr::gemm_bench {

/// result [m, n] of one GEMM, and the operands of its epilogue. All matrices are row-major. Rows have row_stride()
/// elements; the padding is zero.
///   forward: result = max(a b + bias, 0)             a [m, k], b [k, n], bias [n]
///   dgrad:   result = y > 0 ? factor * a b^T : 0     a [m, k], b [n, k], y [m, n]; sums [parts, stride]: column sums
///                                                    over some rows of the rounded result
///   wgrad:   result = a^T b, in f32                  a [k, m], b [k, n]
struct Gemm {
  int m = 0, n = 0, k = 0;
  const void *a = nullptr, *b = nullptr, *bias = nullptr, *y = nullptr;
  void* result = nullptr;
  float factor = 1;
  float* sums = nullptr;    ///< dgrad: partial column sums
  float* d_bias = nullptr;  ///< dgrad: [n] column sums
};

/// Rounded up to 16 bytes of a two-byte type.
constexpr int row_stride(int columns) { return (columns + 7) / 8 * 8; }

/// The layout of the partial column sums of a dgrad. Each `rows` rows of the result have one row of sums. Rows of sums
/// are `stride` floats apart.
struct SumLayout {
  int rows = 0, stride = 0;
};

/// Device memory that a candidate owns.
struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, FreeDevice>;

/// A candidate is prepared for several sets of operands. Successive launches of a measurement use different sets.
/// Functions return an empty string, or what went wrong; they do not throw.
class Candidate {
 public:
  virtual ~Candidate() = default;
  virtual std::string name() const = 0;
  /// Adds a set. `swizzle`: the number of adjacent tile rows or columns that CUTLASS's tile scheduler groups.
  virtual std::string add_set(const std::vector<Gemm>& gemms, int swizzle) = 0;
  virtual void drop_sets() = 0;
  /// Starts the kernels of a set. `early`: programmatic dependent launch.
  virtual std::string launch(int set, cudaStream_t stream, bool early) = 0;
  /// Whether launch() can start early.
  virtual bool can_start_early() const { return false; }
  /// Whether `swizzle` matters.
  virtual bool has_swizzle() const { return false; }
  virtual SumLayout sums(int n) const {
    (void)n;
    return {};
  }
};
using Candidates = std::vector<std::unique_ptr<Candidate>>;

enum class Operator { forward, dgrad, wgrad };
enum class Type { f16, bf16 };

/// One candidate for each configuration of write_configs.cmake.
Candidates cutlass_candidates(Operator, Type);

}  // namespace hctr::gemm_bench
