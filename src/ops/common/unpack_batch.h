// Unpacks an uploaded batch into the tensors that operators read.
#pragma once

#include <optional>
#include <span>

#include "core/base/packed_keys.h"
#include "core/device/op.h"

namespace hctr::ops {

/// One sparse input of an uploaded batch, and its output tensors.
struct UnpackedKeys {
  const PackedKeys* packed;  ///< on the device, like the whole batch
  Tensor keys;               ///< i64 [capacity]; keys[0, packed->count) are written
  Tensor offsets;            ///< i32 [slots * samples + 1]
};

/// The dense values of an uploaded batch, and their output tensor.
struct UnpackedRows {
  const float* from;  ///< contiguous rows
  Tensor rows;        ///< f32 f16 bf16 [samples, any]; rows aligned to 16 bytes; padding gets zeros
};

/// In one kernel, widens keys and orders them by slot, copies the offsets or computes offsets that the batch omits, and
/// copies or rounds rows of dense values. `batch` is the base address of the offsets in PackedKeys; base and offsets
/// are aligned to 16 bytes. Errors: Error(bug) if shapes, dtypes or devices disagree.
HCTR_OP(void unpack_batch(Context&, const std::byte* batch, std::span<const UnpackedKeys> inputs,
                          const std::optional<UnpackedRows>& dense, int64_t samples))

}  // namespace hctr::ops
