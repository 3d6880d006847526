// Packs rows from several arrays of a table into records, and unpacks records into rows.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// An array of a table and its part of the records. Row r of the array has `bytes` bytes at column + r * bytes. The
/// part of record i is at first + i * stride.
struct RecordPart {
  std::byte* column;
  std::byte* first;
  int64_t bytes, stride;
};

/// The parts of a record. Parts do not overlap.
struct RecordParts {
  static constexpr int kMost = 8 + kMostStates;
  int count = 0;
  RecordPart parts[kMost] = {};

  void add(const RecordPart& part) {
    HCTR_EXPECT(count < kMost, "a record may not have more than ", kMost, " parts");
    parts[count++] = part;
  }
};

/// Copies row rows[i] to record i. Shapes: rows [count].
HCTR_OP(void gather_records(Context&, RecordParts, const int32_t* rows, int64_t count))
/// Copies record i to row rows[i]; rows are distinct. Shapes: rows [count].
HCTR_OP(void scatter_records(Context&, RecordParts, const int32_t* rows, int64_t count))

}  // namespace hctr::ops
