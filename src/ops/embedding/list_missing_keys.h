// Lists the keys of a batch that have no row, so that the host can look up these keys elsewhere.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// A key without a row, its slot number and its position in the batch.
struct MissingKey {
  int64_t key;
  int32_t slot;
  int32_t at;
};

/// Lists the keys p of a batch with rows[p] = 0, in batch order, duplicates included. Shapes: rows [key_capacity],
/// found [key_capacity], of which the first *count are written. `found` and `count` may be in page-locked host memory;
/// only the listed keys then cross the bus. `scratch`: missing_scratch_bytes().
HCTR_OP(void list_missing_keys(Context&, KeyBatch, const int32_t* rows, std::byte* scratch, MissingKey* found,
                               int32_t* count))
size_t missing_scratch_bytes(Device, int64_t key_capacity);
namespace cuda {
size_t missing_scratch_bytes(int64_t key_capacity);
}

}  // namespace hctr::ops
