// Tells operators that a forward pass is for scoring: the weights stay constant, and the caller reads only predictions.
#pragma once

#include <cstdint>

namespace hctr {
namespace ops {
class PackedWeights;
}

struct ScoringRules {
  /// The largest batches for which linear() uses the kernel of ops/gemm/few_rows.h on a GPU: few_rows_f32 for f32,
  /// few_rows_half for two-byte types. 0: never.
  int64_t few_rows_f32 = 16, few_rows_half = 4;
  /// Packed copies of weights for the CPU; null: none.
  const ops::PackedWeights* packed = nullptr;
  bool losses = false;  ///< whether to compute the values of losses; if false, the values may be undefined
};

/// While this object exists, operators that this thread calls follow the rules. On a GPU, kernels may read weights
/// before the previous kernel has ended. The rules must outlive the scope.
class ScoringScope {
 public:
  explicit ScoringScope(const ScoringRules&);
  ~ScoringScope();
  ScoringScope(const ScoringScope&) = delete;
  ScoringScope& operator=(const ScoringScope&) = delete;

  /// The rules of this thread's innermost scope; null outside of scopes.
  static const ScoringRules* rules();

 private:
  const ScoringRules* before_;
};

}  // namespace hctr
