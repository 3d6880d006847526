#include "ops/embedding/batch_rows.h"

#include <algorithm>

namespace hctr::ops {

void read_rows(Context& ctx, FeatureRange range, const int32_t* rows, int32_t* to) {
  HCTR_ON_DEVICE(ctx, read_rows(ctx, range, rows, to));
}
void place_rows(Context& ctx, FeatureRange range, const int32_t* from, const uint32_t* last_row, int64_t capacity,
                int32_t* rows) {
  HCTR_ON_DEVICE(ctx, place_rows(ctx, range, from, last_row, capacity, rows));
}

namespace cpu {

void read_rows(Context&, FeatureRange range, const int32_t* rows, int32_t* to) {
  const int32_t count = *range.end - *range.begin;
  std::copy_n(rows + *range.begin, count, to);
  std::fill(to + count, to + range.most, 0);
}

void place_rows(Context&, FeatureRange range, const int32_t* from, const uint32_t* last_row, int64_t capacity,
                int32_t* rows) {
  const uint32_t last = *last_row;
  std::transform(from, from + (*range.end - *range.begin), rows + *range.begin,
                 [&](int32_t row) { return static_cast<uint32_t>(row) <= last ? row : 0; });
  if (*range.end < capacity) std::fill(rows + *range.end, rows + capacity, 0);
}

}  // namespace cpu
}  // namespace hctr::ops
