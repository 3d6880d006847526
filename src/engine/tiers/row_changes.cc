#include "engine/tiers/row_changes.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "ops/embedding/row_swap.h"

namespace hctr {
namespace {

constexpr int64_t kMarksAtATime = int64_t{1} << 22;  // marks per copy

}  // namespace

void RowChanges::forget() {
  base_.reset();
  delta_known_ = false;
}

void RowChanges::set_base(const BaseCheckpoint& base, DiskRows* disk) {
  base_ = base;
  clear(ops::kChangedSinceCheckpoint, disk);
}

void RowChanges::start_delta(DiskRows* disk) {
  if (!are_marked()) return;
  clear(ops::kChangedSinceModel, disk);
  delta_known_ = true;
}

void RowChanges::clear(uint8_t bit, DiskRows* disk) {
  const StreamRef stream = arrays_.runtime().compute_stream();
  const int64_t all = arrays_.capacity() + 1;
  if (disk) disk->clear_marks(bit);
  // If the other bit of the marks is in use, clear only `bit`.
  const bool others = bit == ops::kChangedSinceModel ? base_.has_value() : delta_known_;
  if (!others) {
    zero_bytes(stream, arrays_.marks(), static_cast<size_t>(all));
    return stream.synchronize();
  }
  std::vector<uint8_t> marks;
  for (int64_t first = 0; first < all; first += kMarksAtATime) {
    marks.resize(static_cast<size_t>(std::min(kMarksAtATime, all - first)));
    copy_bytes(stream, marks.data(), arrays_.marks() + first, marks.size());
    stream.synchronize();
    for (uint8_t& mark : marks) mark &= static_cast<uint8_t>(~bit);
    copy_bytes(stream, arrays_.marks() + first, marks.data(), marks.size());
    stream.synchronize();
  }
}

std::vector<int32_t> RowChanges::marked_rows(int64_t last, uint8_t bit) const {
  const StreamRef stream = arrays_.runtime().compute_stream();
  std::vector<int32_t> rows;
  std::vector<uint8_t> marks;
  for (int64_t first = 1; first <= last; first += kMarksAtATime) {
    marks.resize(static_cast<size_t>(std::min(kMarksAtATime, last + 1 - first)));
    copy_bytes(stream, marks.data(), arrays_.marks() + first, marks.size());
    stream.synchronize();
    for (size_t i = 0; i < marks.size(); ++i)
      if ((marks[i] & bit) != 0) rows.push_back(static_cast<int32_t>(first + static_cast<int64_t>(i)));
  }
  if (!arrays_.numbers() || rows.empty()) return rows;
  std::vector<int32_t> at_places(static_cast<size_t>(last) + 1);
  copy_bytes(stream, at_places.data(), arrays_.numbers(), at_places.size() * sizeof(int32_t));
  stream.synchronize();
  for (int32_t& row : rows) row = at_places[static_cast<size_t>(row)];
  std::sort(rows.begin(), rows.end());
  return rows;
}

void RowChanges::mark(Context& ctx, const int32_t* rows, int64_t count, uint8_t bits) const {
  ops::mark_rows(ctx, rows, count, arrays_.marks(), bits);
}

void RowChanges::follow(Context& ctx, const ops::RowMoves& moves, int64_t rows) {
  if (!are_marked()) return;
  ops::move_rows(ctx, moves, arrays_.marks(), 1);
  zero_bytes(ctx.stream(), arrays_.marks() + moves.rows + 1, static_cast<size_t>(rows - moves.rows));
  // Marks of changes since the last model are correct now: they have moved with their rows, and models identify rows by
  // key.
  if (go_by_place()) return;
  mark(ctx, moves.to, moves.count, ops::kChangedSinceCheckpoint);
  if (!base_) return;
  base_->rows = std::min(base_->rows, moves.rows);
  base_->keys_moved = base_->keys_moved || moves.count > 0;
}

void RowChanges::set_base_places(int64_t rows, std::span<DiskRows::Row> on_disk, std::span<const int32_t> changed,
                                 DiskRows& disk) {
  const int64_t base_rows = base_->rows;
  if (!changed.empty() && (changed.front() < 0 || changed.back() >= base_rows))
    throw Error(Kind::data, cat(arrays_.label(), ": rows ", changed.front(), " to ", changed.back(),
                                " of a checkpoint are listed as changed, but its base has only ", base_rows, " rows"));
  const auto place_of = [&](int64_t number) { return number <= base_rows ? number : 0; };
  std::vector<int32_t> places(static_cast<size_t>(rows));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int32_t>(place_of(static_cast<int64_t>(i) + 1));
  const StreamRef stream = arrays_.runtime().compute_stream();
  copy_bytes(stream, arrays_.base_places() + 1, places.data(), places.size() * sizeof(int32_t));
  for (size_t i = 0; i < on_disk.size(); ++i)
    on_disk[i].base = static_cast<uint32_t>(place_of(rows + static_cast<int64_t>(i) + 1)) & DiskRows::kMostBaseRows;
  std::vector<uint8_t> marks(changed.empty() ? 0 : places.size());
  for (const int32_t row : changed) {
    if (row < rows)
      marks[static_cast<size_t>(row)] = ops::kRowChanged;
    else
      on_disk[static_cast<size_t>(row - rows)].marks = ops::kRowChanged;
  }
  copy_bytes(stream, arrays_.marks() + 1, marks.data(), marks.size());
  stream.synchronize();
  disk.set_base(on_disk);
}

void RowChanges::load(const StateReader& from, int64_t rows, DiskRows* disk) {
  if (!are_marked()) return;
  const RowColumn& first = arrays_.first_saved();  // length of this column = number of rows in the base
  const StateArray& saved = from.at(first.name);
  const auto base = from.base_of_next(saved);
  if (!base || (go_by_place() && base->rows > DiskRows::kMostBaseRows)) return;
  std::vector<int32_t> changed;
  if (from.has(kList)) from.list(kList, changed);
  base_ = {base->iteration, base->rows, saved.from_base && saved.from_base->count > 0 && first.fixed()};
  zero_bytes(arrays_.runtime().compute_stream(), arrays_.marks(), static_cast<size_t>(arrays_.capacity()) + 1);
  if (!go_by_place()) return mark_base_rows(changed);
  std::vector<DiskRows::Row> on_disk = disk->sorted_rows();
  set_base_places(rows, on_disk, changed, *disk);
}

void RowChanges::mark_base_rows(std::span<const int32_t> indices) {
  const StreamRef stream = arrays_.runtime().compute_stream();
  std::vector<uint8_t> marks;
  for (size_t i = 0; i < indices.size();) {
    const int64_t first = indices[i];  // index `first` belongs to row first + 1
    if (first < 0 || first >= base_->rows)
      throw Error(Kind::data,
                  cat(arrays_.label(), ": row ", first, " of a checkpoint is listed as changed, but its base has only ",
                      base_->rows, " rows"));
    marks.assign(static_cast<size_t>(std::min(kMarksAtATime, base_->rows - first)), 0);
    for (; i < indices.size() && indices[i] >= first && indices[i] - first < static_cast<int64_t>(marks.size()); ++i)
      marks[static_cast<size_t>(indices[i] - first)] = ops::kRowChanged;
    copy_bytes(stream, arrays_.marks() + first + 1, marks.data(), marks.size());
    stream.synchronize();
  }
  stream.synchronize();
}

}  // namespace hctr
