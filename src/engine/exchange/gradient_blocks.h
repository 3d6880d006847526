// Sends gradients of long vectors by copy engines, so that GEMMs keep the multiprocessors.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/stream.h"
#include "ops/embedding/vector_blocks.h"

namespace hctr {

/// The columns of one owner, as indices in a sample of this rank, and the address of its message.
struct OwnerColumns {
  std::vector<int64_t> columns;
  std::byte* message = nullptr;
};

/// Part of an Exchange whose ranks write each gradient unchanged and directly to its owner.
class GradientBlocks {
 public:
  struct Layout {
    std::vector<OwnerColumns> owners;  ///< by rank
    int own = 0;                       ///< this rank
    int64_t samples = 0;               ///< of this rank
    int64_t columns = 0;               ///< of a sample
    int64_t vector_bytes = 0;          ///< of a column
  };
  GradientBlocks(Runtime&, Layout);

  /// Whether gradients with this layout can be sent: samples must be contiguous.
  bool takes(const Tensor& dy) const;
  /// Copies dy to all owners. Can be recorded, but not within a Lockstep.
  void send(Context&, Tensor dy);

 private:
  void add_blocks(const OwnerColumns&, const std::byte* dy, std::vector<ops::VectorBlock>& to) const;

  Layout layout_;
  Stream to_others_, to_own_;  // two, so that two engines work
  Event gradients_ready_, sent_, kept_;
};

}  // namespace hctr
