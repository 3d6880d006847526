// Sends gradients of long vectors by copy engines, which leaves the multiprocessors to GEMMs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/stream.h"
#include "ops/embedding/vector_blocks.h"

namespace hctr {

/// The columns of one owner, as indices among the columns of a sample, and the address of the message to that owner.
struct OwnerColumns {
  std::vector<int64_t> columns;
  std::byte* message = nullptr;
};

/// The gradient transport of an Exchange in which each rank copies gradients unchanged. Each gradient goes directly to
/// the memory of its owner.
class GradientBlocks {
 public:
  struct Layout {
    std::vector<OwnerColumns> owners;  ///< [rank]
    int own = 0;                       ///< number of this rank
    int64_t samples = 0;               ///< samples of this rank
    int64_t columns = 0;               ///< columns of a sample
    int64_t vector_bytes = 0;          ///< bytes of a column's vector
  };
  GradientBlocks(Runtime&, Layout);

  /// Whether copy engines can send `dy`. Requires contiguous samples.
  bool takes(const Tensor& dy) const;
  /// Copies dy to all owners. Can be recorded, but not in a Lockstep.
  void send(Context&, Tensor dy);

 private:
  void add_blocks(const OwnerColumns&, const std::byte* dy, std::vector<ops::VectorBlock>& to) const;

  Layout layout_;
  Stream to_others_, to_own_;  // two streams, so that two copy engines work at the same time
  Event gradients_ready_, sent_, kept_;
};

}  // namespace hctr
