// Rows of several arrays as records: moves rows out of a table's arrays and back.
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// An array of a table and its part of records: row r has `bytes` bytes at column + r * bytes, record i has them at
/// first + i * stride.
struct RecordPart {
  std::byte* column;
  std::byte* first;
  int64_t bytes, stride;
};

/// Parts of a record. No two parts overlap.
struct RecordParts {
  static constexpr int kMost = 8 + kMostStates;
  int count = 0;
  RecordPart parts[kMost] = {};

  void add(const RecordPart& part) {
    HCTR_EXPECT(count < kMost, "a record may not have more than ", kMost, " parts");
    parts[count++] = part;
  }
};

/// Record i receives row rows[i]. Shapes: rows [count].
HCTR_OP(void gather_records(Context&, RecordParts, const int32_t* rows, int64_t count))
/// Row rows[i] receives record i; rows are distinct. Shapes: rows [count].
HCTR_OP(void scatter_records(Context&, RecordParts, const int32_t* rows, int64_t count))

}  // namespace hctr::ops
