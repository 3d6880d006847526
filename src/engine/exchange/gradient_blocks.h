// Sends gradients of long vectors by copy engines, which leaves the multiprocessors to GEMMs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/stream.h"
#include "ops/embedding/vector_blocks.h"

namespace hctr {

/// Copy engines are slow for segments below this many bytes.
constexpr size_t kLongVector = 128;

/// The columns of one owner, as column indices of a sample, and the address of the message to or from that owner. The
/// message contains these columns only.
struct OwnerColumns {
  std::vector<int64_t> columns;
  std::byte* message = nullptr;
};

/// The vectors of all columns, in the memory of the rank of the samples.
struct SampleVectors {
  std::byte* first = nullptr;  ///< vector of column 0 of the message's first sample
  int64_t columns = 0;         ///< columns of a sample
  int64_t vector_bytes = 0;    ///< bytes of a column's vector
  int64_t stride = 0;          ///< bytes between adjacent samples
};

/// The copies that move the columns of an owner for `samples` samples: from `vectors` to the message, or back if
/// `from_message`. One copy if the columns are evenly spaced, also from the last column of a sample to the first column
/// of the next sample. Otherwise one copy for each run of adjacent columns.
std::vector<ops::VectorBlock> column_copies(const OwnerColumns&, const SampleVectors& vectors, int64_t samples,
                                            bool from_message);

/// The gradient transport of an Exchange in which each rank copies every gradient, unchanged, directly to the memory of
/// its owner.
class GradientBlocks {
 public:
  struct Layout {
    std::vector<OwnerColumns> owners;  ///< [rank]
    int own = 0;                       ///< number of this rank
    int own_copies = 1;                ///< number of streams that copy this rank's own gradients
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
  Layout layout_;
  Stream to_others_;
  std::vector<Stream> to_own_;  // other streams, so that several copy engines work at the same time
  Event gradients_ready_, sent_;
  std::vector<Event> kept_;
};

}  // namespace hctr
