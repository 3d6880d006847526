#include "formats/reader/batch_fill.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// Copies the ranges of a row-major array [rows, dim] and fills the rest up to `capacity` rows with zeros.
void fill_dense(float* to, int64_t capacity, int64_t dim, std::span<const RowRange> ranges,
                std::vector<float> SampleBlock::*from) {
  float* const end = to + capacity * dim;
  for (const RowRange& range : ranges)
    to = std::copy_n((range.block->*from).data() + range.first * dim, range.count * dim, to);
  std::fill(to, end, 0.0f);
}

/// One slot of a table in the batch.
struct SlotColumn {
  size_t table = 0;
  int64_t slot = 0, record_slot = 0;  // slot: index in the table; record_slot: index in the record
  int64_t begin = 0;                  // index of the slot's first key in the table
  bool ones = true;                   // each row has one key in the slot
};

const int32_t* offsets_of(const RowRange& range, int64_t record_slot) {
  return range.block->offsets.data() + record_slot * range.block->rows + range.first;
}

/// Number of keys of a slot in the batch, after truncation of bags.
int64_t count_keys(const BatchShape::Table& shape, int64_t record_slot, std::span<const RowRange> ranges) {
  int64_t keys = 0;
  for (const RowRange& range : ranges) {
    if (range.block->has_ones(record_slot)) {
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

/// Index of the range's first key in a slot with one key per row.
int64_t begin_of_ones(const RowRange& range, int64_t record_slot) {
  const int64_t row_0 = record_slot * range.block->rows;
  return (range.block->one_hot ? row_0 : range.block->offsets[static_cast<size_t>(row_0)]) + range.first;
}

template <class From, class To>
void copy_keys(const From* from, int64_t count, To* to) {
  if (count == 1)  // fast path for shuffled rows, which are copied one by one
    *to = static_cast<To>(*from);
  else
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<To>(from[k]);
}

/// Writes the keys of one slot, and its offsets if the batch has any.
template <class Key>
class SlotFill {
 public:
  SlotFill(const BatchView::Table& view, const BatchShape::Table& shape, const SlotColumn& place)
      : keys_(view.keys<Key>()),
        offsets_(view.packed->offsets == PackedKeys::kOnes ? nullptr : view.offsets() + place.slot * view.samples),
        slot_end_(offsets_ ? offsets_ + view.samples : nullptr),
        shape_(shape),
        place_(place),
        at_(static_cast<int32_t>(place.begin)) {}

  void fill(std::span<const RowRange> ranges) {
    for (const RowRange& range : ranges)
      if (range.block->narrow)
        add(range, range.block->keys_32.data());
      else
        add(range, range.block->keys.data());
    if (!offsets_) return;
    std::fill(offsets_, slot_end_, at_);
    if (place_.slot + 1 == shape_.slots) *slot_end_ = at_;
  }

 private:
  /// Copies the bags of a range. The keys must fit the capacity.
  template <class From>
  void add(const RowRange& range, const From* keys) {
    if (range.block->has_ones(place_.record_slot)) {  // no truncation, because limits allow at least one key
      for (int64_t r = 0; offsets_ && r < range.count; ++r) offsets_[r] = at_ + static_cast<int32_t>(r);
      copy_keys(keys + begin_of_ones(range, place_.record_slot), range.count, keys_ + at_);
      at_ += static_cast<int32_t>(range.count);
    } else if (const int32_t* from = offsets_of(range, place_.record_slot); shape_.keep > 0) {
      add_kept(from, range.count, keys);
    } else {
      const int32_t begin = from[0], count = from[range.count] - begin, shift = at_ - begin;
      for (int64_t r = 0; r < range.count; ++r) offsets_[r] = from[r] + shift;
      copy_keys(keys + begin, count, keys_ + at_);
      at_ += count;
    }
    if (offsets_) offsets_ += range.count;
  }

  /// Copies the bags of `count` rows, truncated to shape_.keep keys. `from`: offset of each bag.
  template <class From>
  void add_kept(const int32_t* from, int64_t count, const From* keys) {
    for (int64_t r = 0; r < count; ++r) {
      const auto kept = static_cast<int32_t>(std::min<int64_t>(from[r + 1] - from[r], shape_.keep));
      offsets_[r] = at_;
      copy_keys(keys + (shape_.keep_last ? from[r + 1] - kept : from[r]), kept, keys_ + at_);
      at_ += kept;
    }
  }

  Key* keys_;
  int32_t *offsets_, *slot_end_;  // null if the batch has no offsets
  const BatchShape::Table& shape_;
  const SlotColumn& place_;
  int32_t at_;
};

/// Chooses the key form of each table and sets the first key index of each slot in `places`. `each`: runs a body for
/// every slot.
template <class Each>
std::vector<KeyForm> choose_forms(const BatchShape& shape, int64_t rows, std::span<const RowRange> ranges,
                                  std::vector<SlotColumn>& places, const Each& each) {
  const auto in_all = [&](const auto& holds) {
    return std::all_of(ranges.begin(), ranges.end(), [&](const RowRange& range) { return holds(*range.block); });
  };
  const bool fits_32 = in_all([](const SampleBlock& block) { return block.narrow || block.fits_32; });
  std::vector<KeyForm> forms(shape.tables.size(), {.fits_32 = fits_32, .ones = true, .rows = rows});
  const bool one_hot = in_all([](const SampleBlock& block) { return block.one_hot; });
  each(0, [&](int64_t i) {
    SlotColumn& place = places[static_cast<size_t>(i)];
    place.ones = one_hot || in_all([&](const SampleBlock& block) { return block.has_ones(place.record_slot); });
    place.begin = place.ones ? rows : count_keys(shape.tables[place.table], place.record_slot, ranges);
  });
  for (SlotColumn& place : places) {  // exclusive prefix sum: counts become offsets
    KeyForm& form = forms[place.table];
    form.ones &= place.ones;
    form.count += std::exchange(place.begin, form.count);
  }
  return forms;
}

}  // namespace

void fill_batch(const BatchLayout& layout, std::byte* memory, std::span<const RowRange> ranges, ThreadPool& pool) {
  constexpr int64_t kAlone = 256 << 10;  // batches of fewer bytes are filled by one thread
  const BatchShape& shape = layout.shape;
  int64_t rows = 0;
  for (const RowRange& range : ranges) rows += range.count;
  HCTR_EXPECT(rows <= shape.samples, rows, " rows do not fit in a batch of ", shape.samples);
  const BatchView view(layout, memory);
  std::vector<SlotColumn> places;
  for (size_t t = 0; t < shape.tables.size(); ++t)
    for (int64_t s = 0; s < shape.tables[t].slots; ++s) places.push_back({t, s, static_cast<int64_t>(places.size())});
  const auto slots = static_cast<int64_t>(places.size());
  const int64_t grain = rows * 4 * (shape.label_dim + shape.dense_dim + slots) < kAlone ? slots + 2 : 1;
  const auto each = [&](int64_t extra, const auto& body) {
    pool.parallel_for(slots + extra, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  };
  view.place(choose_forms(shape, rows, ranges, places, each));
  each(2, [&](int64_t i) {
    if (i == 0) return fill_dense(view.dense, shape.samples, shape.dense_dim, ranges, &SampleBlock::dense);
    if (i == 1) return fill_dense(view.label, shape.samples, shape.label_dim, ranges, &SampleBlock::label);
    const SlotColumn& place = places[static_cast<size_t>(i - 2)];
    const BatchView::Table& table = view.tables[place.table];
    if (table.packed->key_bytes == 4)
      SlotFill<uint32_t>(table, shape.tables[place.table], place).fill(ranges);
    else
      SlotFill<int64_t>(table, shape.tables[place.table], place).fill(ranges);
  });
}

}  // namespace hctr
