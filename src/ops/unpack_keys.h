// From the form in which a batch was uploaded to that in which operators of embeddings take keys.
#pragma once

#include <span>

#include "base/packed_keys.h"
#include "device/op.h"

namespace hctr::ops {

/// One sparse input of an uploaded batch, and where it goes.
struct UnpackedKeys {
  const PackedKeys* packed;  ///< on the device, as all of the batch
  Tensor keys;               ///< i64 [capacity]: written up to packed->count
  Tensor offsets;            ///< i32 [slots * samples + 1]
};

/// Widens keys and writes the offsets that were left out, for all inputs in one kernel. `batch`: what offsets in
/// PackedKeys count from, aligned to 16 bytes, as they are. Errors: Error(bug) if shapes, dtypes or devices disagree.
HCTR_OP(void unpack_keys(Context&, const std::byte* batch, std::span<const UnpackedKeys> inputs, int64_t samples))

}  // namespace hctr::ops
