// Helpers shared by the implementations of ops/loss/logit_loss.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/loss/logit_loss.h"

namespace hctr::ops {

inline constexpr int64_t kMostLogitLossParts = 512;

/// The number of parts of the rows that CUDA sums separately, with one block per part. A small batch has few rows per
/// part, to occupy every multiprocessor. A large batch has 16 rows per part, or more rows if there would be more than
/// kMostLogitLossParts parts, to limit the partial sums. Up to 2,048 rows, all blocks can start early on an H100.
inline int64_t logit_loss_parts(int64_t rows) {
  constexpr int64_t kFewest = 128, kRows = 16, kFewestRows = 4;
  const auto parts_of = [&](int64_t each) { return (rows + each - 1) / each; };
  return std::clamp<int64_t>(std::max(parts_of(kRows), std::min(parts_of(kFewestRows), kFewest)), 1,
                             kMostLogitLossParts);
}

/// The logits of `sum`, or y of the layer if there is no sum.
inline const Tensor& logits_of(const LogitLayer& layer, const std::optional<LogitSum>& sum) {
  return sum ? sum->logits : layer.y;
}

/// logit_loss() and logit_loss_backward() as sequences of separate operators.
namespace one_by_one {
void logit_loss(Context&, const LogitLayer&, const std::optional<LogitSum>&, const LogitTarget&);
void logit_loss_backward(Context&, const LogitLayer&, const std::optional<LogitSum>&, const LogitTarget&);
}  // namespace one_by_one

}  // namespace hctr::ops
