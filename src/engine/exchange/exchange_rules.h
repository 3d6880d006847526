// How ranks of one host exchange vectors and gradients. Results are equal bit for bit with any rules.
#pragma once

#include <cstdint>

namespace hctr {

struct ExchangeRules {
  /// Gradients of short vectors: a kernel packs one message per owner, and copy engines send the messages. Without this
  /// rule, the kernel writes to the memory of the owners, which occupies multiprocessors for as long as the links take.
  bool packed_gradients = false;
  int64_t least_packed_bytes = int64_t{1} << 20;  ///< smaller messages are never packed (mean over the owners)
  /// Long vectors: an owner pools the vectors of some samples while copy engines send those of the samples before.
  bool vectors_in_pieces = false;
  int64_t least_piece_samples = 1024;  ///< batches with fewer samples per rank are sent as a whole
  int own_copies = 1;                  ///< streams on which copy engines copy a rank's own long gradients
  /// On two ranks that add dense gradients in each other's memory: the overflow check reads the operands of the wgrads,
  /// so tables are updated concurrently with the wgrads.
  bool skip_known_early = false;
};

}  // namespace hctr
