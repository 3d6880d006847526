// The memory of the batches of a table: a BatchMemory per buffer of the ring, and a BatchScratch that all buffers
// share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/arena.h"
#include "core/device/context.h"
#include "ops/embedding/embedding_group.h"

namespace hctr {

/// The memory of a batch of at most `keys` keys.
class BatchMemory {
 public:
  BatchMemory(Device, int64_t keys);

  int64_t keys() const { return keys_; }
  int32_t* rows = nullptr;  ///< [keys]
  ops::RowGroups groups;
  uint32_t* rows_after = nullptr;

 private:
  int64_t keys_;
  Arena arena_;
};

/// Scratch of prepare() and update().
class BatchScratch {
 public:
  BatchScratch(Device, int64_t keys, int64_t eval_keys, int64_t dim);

  float* piece_sums = nullptr;   ///< [RowGroups::most_pieces(keys), dim]
  int32_t* eval_rows = nullptr;  ///< [eval_keys]
  std::byte* group = nullptr;    ///< scratch of ops::group_by_row()

 private:
  Arena arena_;
};

}  // namespace hctr
