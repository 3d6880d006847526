// Copies the row numbers of one feature's keys from a batch to memory of the caller, and back.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// The positions of a feature's keys in a batch: *begin up to *end, on the device.
struct FeatureRange {
  const int32_t* begin;
  const int32_t* end;
  int64_t most;  // maximum number of keys
};

/// to[i] = rows[*begin + i]; 0 past the last key. Shapes: to [most].
HCTR_OP(void read_rows(Context&, FeatureRange, const int32_t* rows, int32_t* to))

/// rows[*begin + i] = from[i]. A number above *last_row, or below 0, becomes 0: such a row does not exist. Also writes
/// 0 to the positions from *end up to `capacity`. Shapes: from [most].
HCTR_OP(void place_rows(Context&, FeatureRange, const int32_t* from, const uint32_t* last_row, int64_t capacity,
                        int32_t* rows))

}  // namespace hctr::ops
