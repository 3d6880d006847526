// The keys of a batch that have no row, for the host to look for elsewhere.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// A key that has no row, with the number of its slot and its position in the batch.
struct MissingKey {
  int64_t key;
  int32_t slot;
  int32_t at;
};

/// Lists the keys of a batch whose row in `rows` is 0, in the order of the batch, as often as they occur. Shapes: rows
/// [key_capacity], found [key_capacity], of which the first *count are written. `found` and `count` may be page-locked
/// memory of the host, which then receives only these keys. `scratch`: missing_scratch_bytes().
HCTR_OP(void list_missing_keys(Context&, KeyBatch, const int32_t* rows, std::byte* scratch, MissingKey* found,
                               int32_t* count))
size_t missing_scratch_bytes(Device, int64_t key_capacity);
namespace cuda {
size_t missing_scratch_bytes(int64_t key_capacity);
}

}  // namespace hctr::ops
