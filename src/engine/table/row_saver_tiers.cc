// Incremental checkpoints of tables with rows on disk. A row is identified by its place: its record number in the last
// full checkpoint.
#include <algorithm>
#include <cstring>

#include "core/device/copy_bytes.h"
#include "engine/table/row_saver.h"

namespace hctr {
namespace {

constexpr int64_t kTierBlockBytes = int64_t{4} << 20;

}  // namespace

/// The rows of an incremental checkpoint. Rows of the base keep their places. New rows take the places of removed rows.
/// If no such place is left, new rows follow at the end.
struct RowSaver::ChangedPlaces {
  std::vector<int32_t> places;   // places (from 0) in the base where a row has changed
  std::vector<int64_t> changed;  // the rows at these places
  std::vector<int64_t> added;    // the rows that follow the rows of the base
  bool fills_gaps = false;       // whether a new row takes the place of a removed row
};

RowSaver::ChangedPlaces RowSaver::changed_places() const {
  const std::span<const DiskRows::Row> on_disk = rows_.on_disk;
  std::vector<int32_t> places(static_cast<size_t>(rows_.in_memory));
  std::vector<uint8_t> marks(places.size());
  const StreamRef stream = arrays_.runtime().compute_stream();
  copy_bytes(stream, places.data(), arrays_.base_places() + 1, places.size() * sizeof(int32_t));
  copy_bytes(stream, marks.data(), arrays_.marks() + 1, marks.size());
  stream.synchronize();
  const int64_t all = rows(), of_base = std::min(changes_.base()->rows, all);
  std::vector<int64_t> order(static_cast<size_t>(all)), others;
  std::vector<bool> has_changed(static_cast<size_t>(of_base));
  const auto put = [&](int64_t row, int64_t place, uint32_t mark) {
    if (place == 0 || place > of_base) return others.push_back(row);
    order[static_cast<size_t>(place - 1)] = row;
    has_changed[static_cast<size_t>(place - 1)] = (mark & ops::kChangedSinceCheckpoint) != 0;
  };
  for (size_t i = 0; i < places.size(); ++i) put(static_cast<int64_t>(i) + 1, places[i], marks[i]);
  for (size_t i = 0; i < on_disk.size(); ++i)
    put(-1 - static_cast<int64_t>(i), static_cast<int64_t>(on_disk[i].base), on_disk[i].marks);
  ChangedPlaces found;
  auto next = others.begin();
  for (int64_t i = 0; i < all; ++i) {
    int64_t& row = order[static_cast<size_t>(i)];
    const bool gap = row == 0;
    if (gap) row = *next++;
    if (i >= of_base || (!gap && !has_changed[static_cast<size_t>(i)])) continue;
    found.fills_gaps = found.fills_gaps || gap;
    found.places.push_back(static_cast<int32_t>(i));
    found.changed.push_back(row);
  }
  HCTR_EXPECT(next == others.end(), arrays_.label(), ": two rows have the same position in a checkpoint");
  found.added.assign(order.begin() + of_base, order.end());
  return found;
}

void RowSaver::save_changes_by_place() const {
  const int64_t all = rows(), of_base = std::min(changes_.base()->rows, all);
  ChangedPlaces found = changed_places();
  std::vector<int64_t>&changed = found.changed, &added = found.added;
  if (!found.places.empty()) to_.list(RowChanges::kList, found.places);
  const auto in_memory = [](const std::vector<int64_t>& some) {
    return std::count_if(some.begin(), some.end(), [](int64_t row) { return row > 0; });
  };
  const bool later = rows_.snapshot && fits_later(in_memory(changed) + in_memory(added),
                                                  static_cast<int64_t>(changed.size() + added.size()));
  std::vector<LaterColumn> changed_later, added_later;
  for (const RowColumn& column : arrays_.columns()) {
    if (!column.saved) continue;
    StateWriter::Changes changes{.base_rows = of_base, .list = {}};
    if ((!column.fixed() || changes_.base()->keys_moved || found.fills_gaps) && !changed.empty()) {
      changes.list = RowChanges::kList;
      changes.count = static_cast<int64_t>(changed.size());
      changes.copy = [&](int64_t first, int64_t count, std::byte* host) {
        copy(column, std::span(changed).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), host);
      };
    }
    if (!later) {
      to_.changes(column.name, column.type, column.shape(all), changes,
                  [&](StreamRef, int64_t first, std::span<std::byte> piece) { read(column, added, first, piece); });
      continue;
    }
    const LaterRows::Part part = to_.place_of_changes(column.name, column.type, column.shape(all), changes);
    if (changes.count > 0) changed_later.push_back({&column, part});
    added_later.push_back({&column, {part.offset + changes.count * part.row_bytes, part.row_bytes}});
  }
  if (!changed.empty()) leave_for_later(std::move(changed), changed_later);
  if (!added.empty()) leave_for_later(std::move(added), added_later);
}

void RowSaver::read(const RowColumn& column, std::span<const int64_t> order, int64_t first,
                    std::span<std::byte> to) const {
  const int64_t bytes = column.bytes_per_row, block = std::max<int64_t>(1, kTierBlockBytes / bytes),
                end = first + static_cast<int64_t>(to.size());
  std::vector<std::byte> values;
  for (int64_t row = first / bytes; row * bytes < end; row += block) {
    const int64_t count = std::min(block, (end - 1) / bytes - row + 1), begins = row * bytes,
                  low = std::max(begins, first), high = std::min(begins + count * bytes, end);
    values.resize(static_cast<size_t>(count * bytes));
    copy(column, order.subspan(static_cast<size_t>(row), static_cast<size_t>(count)), values.data());
    std::copy(values.begin() + (low - begins), values.begin() + (high - begins), to.begin() + (low - first));
  }
}

void RowSaver::copy(const RowColumn& column, std::span<const int64_t> rows, std::byte* to) const {
  std::vector<int32_t> numbers;
  std::vector<DiskRows::Row> entries;
  for (const int64_t row : rows) {
    if (row > 0)
      numbers.push_back(static_cast<int32_t>(row));
    else
      entries.push_back(rows_.on_disk[static_cast<size_t>(-1 - row)]);
  }
  const auto bytes = static_cast<size_t>(column.bytes_per_row);
  std::vector<std::byte> in_memory(numbers.size() * bytes), from_disk(entries.size() * bytes);
  arrays_.copy_out(column, numbers, in_memory.data());
  for (size_t first = 0; first < entries.size(); first += tier_->block_rows()) {
    const auto some = std::span(entries).subspan(first, std::min(tier_->block_rows(), entries.size() - first));
    tier_->read(column, some, from_disk.data() + first * bytes);
  }
  const std::byte *memory = in_memory.data(), *disk = from_disk.data();
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::byte*& from = rows[i] > 0 ? memory : disk;
    std::memcpy(to + i * bytes, from, bytes);
    from += bytes;
  }
}

}  // namespace hctr
