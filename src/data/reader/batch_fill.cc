#include "data/reader/batch_fill.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace hctr {
namespace {

/// Rows of a row-major array [rows, dim], padded with zeros up to `capacity` rows.
void fill_dense(float* to, int64_t capacity, int64_t dim, std::span<const RowRange> ranges,
                std::vector<float> SampleBlock::*from) {
  float* const end = to + capacity * dim;
  for (const RowRange& range : ranges)
    to = std::copy_n((range.block->*from).data() + range.first * dim, range.count * dim, to);
  std::fill(to, end, 0.0f);
}

/// One slot of a table.
struct SlotColumn {
  size_t table = 0;
  int64_t slot = 0, record_slot = 0;  // in the table, and in the record
  int64_t begin = 0;                  // of its keys in the table
};

const int32_t* offsets_of(const RowRange& range, int64_t record_slot) {
  return range.block->offsets.data() + record_slot * range.block->rows + range.first;
}

/// Keys that the batch gets of a slot.
int64_t count_keys(const BatchShape::Table& shape, int64_t record_slot, std::span<const RowRange> ranges) {
  int64_t keys = 0;
  for (const RowRange& range : ranges) {
    if (range.block->one_hot) {
      keys += range.count;
      continue;
    }
    const int32_t* from = offsets_of(range, record_slot);
    if (shape.keep == 0)
      keys += from[range.count] - from[0];
    else
      for (int64_t r = 0; r < range.count; ++r) keys += std::min<int64_t>(from[r + 1] - from[r], shape.keep);
  }
  return keys;
}

/// Copies the bags of rows [0, count) that start at from[row]; of longer ones only what the table keeps. Returns the
/// end of the keys.
int32_t fill_kept(const BatchView::Table& view, const BatchShape::Table& shape, int32_t at, int32_t* offsets,
                  const int32_t* from, int64_t count, const int64_t* keys) {
  for (int64_t r = 0; r < count; ++r) {
    const auto kept = static_cast<int32_t>(std::min<int64_t>(from[r + 1] - from[r], shape.keep));
    offsets[r] = at;
    std::copy_n(keys + (shape.keep_last ? from[r + 1] - kept : from[r]), kept, view.keys + at);
    at += kept;
  }
  return at;
}

/// Copies the bags of one slot, whose keys fit the capacity.
void fill_slot(const BatchView::Table& view, const BatchShape::Table& shape, int64_t samples, const SlotColumn& place,
               std::span<const RowRange> ranges) {
  int32_t* offsets = view.offsets + place.slot * samples;
  int32_t* const slot_end = offsets + samples;
  auto at = static_cast<int32_t>(place.begin);
  for (const RowRange& range : ranges) {
    const int64_t* keys = range.block->keys.data();
    if (range.block->one_hot) {  // a limit keeps at least one key
      const int64_t* from = keys + place.record_slot * range.block->rows + range.first;
      for (int64_t r = 0; r < range.count; ++r) {  // no call for a copy: shuffled rows come one by one
        offsets[r] = at + static_cast<int32_t>(r);
        view.keys[at + r] = from[r];
      }
      at += static_cast<int32_t>(range.count);
    } else if (const int32_t* from = offsets_of(range, place.record_slot); shape.keep > 0) {
      at = fill_kept(view, shape, at, offsets, from, range.count, keys);
    } else {
      const int32_t begin = from[0], count = from[range.count] - begin, shift = at - begin;
      for (int64_t r = 0; r < range.count; ++r) offsets[r] = from[r] + shift;
      std::copy_n(keys + begin, count, view.keys + at);
      at += count;
    }
    offsets += range.count;
  }
  std::fill(offsets, slot_end, at);
  if (place.slot + 1 == shape.slots) *slot_end = at;
}

}  // namespace

void fill_batch(const BatchLayout& layout, std::byte* memory, std::span<const RowRange> ranges, ThreadPool& pool) {
  const BatchShape& shape = layout.shape;
  int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.count;
  HCTR_EXPECT(rows <= shape.samples, rows, " rows for a batch of ", shape.samples);
  const BatchView view(layout, memory);
  std::vector<SlotColumn> places;
  for (size_t t = 0; t < shape.tables.size(); ++t)
    for (int64_t s = 0; s < shape.tables[t].slots; ++s) places.push_back({t, s, static_cast<int64_t>(places.size())});
  const auto slots = static_cast<int64_t>(places.size());
  const auto each = [&](int64_t extra, const auto& body) {
    pool.parallel_for(slots + extra, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  };
  const bool one_hot =
      std::all_of(ranges.begin(), ranges.end(), [](const RowRange& range) { return range.block->one_hot; });
  if (one_hot)
    for (SlotColumn& place : places) place.begin = rows;
  else
    each(0, [&](int64_t i) {
      SlotColumn& place = places[static_cast<size_t>(i)];
      place.begin = count_keys(shape.tables[place.table], place.record_slot, ranges);
    });
  int64_t at = 0;
  for (SlotColumn& place : places) {  // counts become offsets
    if (place.slot == 0) at = 0;
    at += std::exchange(place.begin, at);
    HCTR_EXPECT(at <= shape.tables[place.table].key_capacity, "a batch with more than ",
                shape.tables[place.table].key_capacity, " keys in one input");
  }
  each(2, [&](int64_t i) {
    if (i == 0) return fill_dense(view.label, shape.samples, shape.label_dim, ranges, &SampleBlock::label);
    if (i == 1) return fill_dense(view.dense, shape.samples, shape.dense_dim, ranges, &SampleBlock::dense);
    const SlotColumn& place = places[static_cast<size_t>(i - 2)];
    fill_slot(view.tables[place.table], shape.tables[place.table], shape.samples, place, ranges);
  });
}

}  // namespace hctr
