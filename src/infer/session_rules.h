// How sessions score. The rules change scores only by rounding: they may change the sizes of GEMMs, and thus the order
// of sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/scoring_scope.h"

namespace hctr {

struct SessionRules {
  ScoringRules forward{};
  /// If a batch has at most this many bytes, a kernel copies its inputs and scores. 0: copy engines copy every batch.
  size_t kernel_copy_bytes = size_t{1} << 16;
  /// Whether the host polls a word that the last kernel writes, instead of synchronizing with the stream.
  bool polls = true;
  /// Batches with at least twice this many samples are scored in pieces of at least this size. While one piece is
  /// computed, the next one is packed and uploaded. 0: batches are not divided.
  int64_t least_piece = 8192;
  bool packs_weights = true;   ///< on a CPU: copies f32 weights to the layout of the GEMM when the model is loaded
  bool pieces_on_cpu = false;  ///< for tests: divides batches also on a CPU, where this saves no time
  static constexpr int64_t kMostPieces = 4;  ///< maximum pieces of a batch, if its number of samples is a power of two
};

}  // namespace hctr
