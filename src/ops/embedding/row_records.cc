#include "ops/embedding/row_records.h"

#include <cstring>

namespace hctr::ops {

void gather_records(Context& ctx, RecordParts parts, const int32_t* rows, int64_t count) {
  HCTR_ON_DEVICE(ctx, gather_records(ctx, parts, rows, count));
}
void scatter_records(Context& ctx, RecordParts parts, const int32_t* rows, int64_t count) {
  HCTR_ON_DEVICE(ctx, scatter_records(ctx, parts, rows, count));
}

namespace cpu {
namespace {

constexpr int64_t kRecordsAtATime = 64;

/// Calls copy(address in the column, address in the record, bytes) for each part of each record.
template <class Copy>
void for_each_part(Context& ctx, const RecordParts& parts, const int32_t* rows, int64_t count, const Copy& copy) {
  ctx.threads().parallel_for(count, kRecordsAtATime, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int p = 0; p < parts.count; ++p) {
        const RecordPart& part = parts.parts[p];
        copy(part.column + rows[i] * part.bytes, part.first + i * part.stride, static_cast<size_t>(part.bytes));
      }
  });
}

}  // namespace

void gather_records(Context& ctx, RecordParts parts, const int32_t* rows, int64_t count) {
  for_each_part(ctx, parts, rows, count,
                [](const std::byte* row, std::byte* record, size_t bytes) { std::memcpy(record, row, bytes); });
}

void scatter_records(Context& ctx, RecordParts parts, const int32_t* rows, int64_t count) {
  for_each_part(ctx, parts, rows, count,
                [](std::byte* row, const std::byte* record, size_t bytes) { std::memcpy(row, record, bytes); });
}

}  // namespace cpu
}  // namespace hctr::ops
