// Tells operators that a forward pass scores: its weights do not change, and its caller reads predictions only.
#pragma once

#include <cstdint>

namespace hctr {
namespace ops {
class PackedWeights;
}

struct ScoringRules {
  /// The largest batch for which linear() runs as ops/gemm/few_rows.h on a GPU, in f32 and in two-byte types. 0: never.
  int64_t few_rows_f32 = 16, few_rows_half = 4;
  /// Packed copies of weights for the CPU; null: none.
  const ops::PackedWeights* packed = nullptr;
  bool losses = false;  ///< whether the values of losses are computed too; otherwise they may be undefined
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
