// From the form in which a batch was uploaded to that in which operators take it.
#pragma once

#include <optional>
#include <span>

#include "core/base/packed_keys.h"
#include "core/device/op.h"

namespace hctr::ops {

/// One sparse input of an uploaded batch, and where it goes.
struct UnpackedKeys {
  const PackedKeys* packed;  ///< on the device, as all of the batch
  Tensor keys;               ///< i64 [capacity]: written up to packed->count
  Tensor offsets;            ///< i32 [slots * samples + 1]
};

/// Dense values of an uploaded batch, and where they go.
struct UnpackedRows {
  const float* from;  ///< one row after the other
  Tensor rows;        ///< f32 f16 bf16 [samples, any], at multiples of 16 bytes; zeros are written behind each row
};

/// Widens keys and puts them in slot order, writes omitted offsets, and copies or rounds rows of dense values, all in
/// one kernel. `batch`: the base of offsets in PackedKeys; both are aligned to 16 bytes.
/// Errors: Error(bug) if shapes, dtypes or devices disagree.
HCTR_OP(void unpack_batch(Context&, const std::byte* batch, std::span<const UnpackedKeys> inputs,
                          const std::optional<UnpackedRows>& dense, int64_t samples))

}  // namespace hctr::ops
