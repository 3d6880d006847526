// The interface for lookups in an embedding table.
#pragma once

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr {

/// Looks up the vectors of a batch of keys, in a local table or in several levels of storage.
class TableReader {
 public:
  virtual ~TableReader() = default;
  /// Writes the vectors of a batch in stream order. Keys without a row contribute nothing. Shapes: keys i64
  /// [key_capacity], defined up to the last offset; offsets i32 [slots * samples + 1], slot-major; y [samples, columns,
  /// dim], f32 f16 bf16, any row stride.
  virtual void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) = 0;
};

}  // namespace hctr
