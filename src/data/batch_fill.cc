#include "data/batch_fill.h"

#include <algorithm>

#include "base/error.h"

namespace hctr {
namespace {

/// Rows of a row-major array [rows, dim], padded with zeros up to `capacity` rows.
void fill_dense(float* to, int64_t capacity, int64_t dim, std::span<const RowRange> ranges, std::vector<float> SampleBlock::*from) {
  float* const end = to + capacity * dim;
  for (const RowRange& range : ranges) to = std::copy_n((range.block->*from).data() + range.first * dim, range.count * dim, to);
  std::fill(to, end, 0.0f);
}

/// The bags of rows [0, count) that start at from[row]; longer ones lose what the table does not keep. Returns the place behind them.
int32_t fill_kept(const BatchView::Table& view, const BatchShape::Table& shape, int32_t at, int32_t* offsets, const int32_t* from, int64_t count,
                  const int64_t* keys) {
  for (int64_t r = 0; r < count; ++r) {
    const auto kept = static_cast<int32_t>(std::min<int64_t>(from[r + 1] - from[r], shape.keep));
    offsets[r] = at;
    HCTR_EXPECT(at + int64_t{kept} <= shape.key_capacity, "a batch with more than ", shape.key_capacity, " keys in one input");
    std::copy_n(keys + (shape.keep_last ? from[r + 1] - kept : from[r]), kept, view.keys + at);
    at += kept;
  }
  return at;
}

/// The bags of table `view`, whose first slot is slot `slot0` of the record.
void fill_table(const BatchView::Table& view, const BatchShape::Table& shape, int64_t samples, int64_t slot0,
                std::span<const RowRange> ranges) {
  int32_t* offsets = view.offsets;
  int32_t at = 0;
  for (int64_t s = 0; s < shape.slots; ++s) {
    int32_t* const slot_end = offsets + samples;
    for (const RowRange& range : ranges) {
      const int32_t* from = range.block->offsets.data() + (slot0 + s) * range.block->rows + range.first;
      if (shape.keep > 0) {
        at = fill_kept(view, shape, at, offsets, from, range.count, range.block->keys.data());
        offsets += range.count;
        continue;
      }
      const int32_t begin = from[0], keys = from[range.count] - begin, shift = at - begin;
      HCTR_EXPECT(at + int64_t{keys} <= shape.key_capacity, "a batch with more than ", shape.key_capacity, " keys in one input");
      for (int64_t r = 0; r < range.count; ++r) offsets[r] = from[r] + shift;
      offsets += range.count;
      std::copy_n(range.block->keys.data() + begin, keys, view.keys + at);
      at += keys;
    }
    std::fill(offsets, slot_end, at);
    offsets = slot_end;
  }
  *offsets = at;
}

}  // namespace

void fill_batch(const BatchLayout& layout, std::byte* memory, std::span<const RowRange> ranges) {
  const BatchShape& shape = layout.shape;
  int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.count;
  HCTR_EXPECT(rows <= shape.samples, rows, " rows for a batch of ", shape.samples);
  const BatchView view(layout, memory);
  fill_dense(view.label, shape.samples, shape.label_dim, ranges, &SampleBlock::label);
  fill_dense(view.dense, shape.samples, shape.dense_dim, ranges, &SampleBlock::dense);
  int64_t slot0 = 0;
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    fill_table(view.tables[t], shape.tables[t], shape.samples, slot0, ranges);
    slot0 += shape.tables[t].slots;
  }
}

}  // namespace hctr
