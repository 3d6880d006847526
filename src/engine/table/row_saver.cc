#include "engine/table/row_saver.h"

#include <algorithm>
#include <utility>

namespace hctr {

void RowSaver::save_all(std::vector<int64_t> order) const {
  const bool later =
      rows_.snapshot && (order.empty() || fits_later(rows_.in_memory, static_cast<int64_t>(order.size())));
  std::vector<LaterColumn> left;
  for (const RowColumn& column : arrays_.columns()) {
    if (!column.saved) continue;
    const std::vector<int64_t> shape = column.shape(rows());
    const auto in_order = [&](StreamRef, int64_t first, std::span<std::byte> piece) {
      read(column, order, first, piece);
    };
    if (later)
      left.push_back({&column, order.empty() ? to_.part_of_array(column.name, column.type, shape, memory_of(column),
                                                                 rows_.in_memory)
                                             : to_.part_of_array(column.name, column.type, shape, {}, 0)});
    else if (order.empty())
      save_column(column);
    else
      to_.array(column.name, column.type, shape, in_order);
  }
  leave_for_later(std::move(order), left);
}

void RowSaver::save_changes_by_number() const {
  const std::vector<int32_t> changed = changes_.since_base();
  std::vector<int32_t> indices = changed;  // saved arrays start with row 1
  for (int32_t& index : indices) --index;
  if (!indices.empty()) to_.list(RowChanges::kList, indices);
  for (const RowColumn& column : arrays_.columns()) {
    if (!column.saved) continue;
    StateWriter::Changes changes{.base_rows = changes_.base()->rows, .list = {}};
    if ((!column.fixed() || changes_.base()->keys_moved) && !changed.empty()) {
      changes.list = RowChanges::kList;
      changes.count = static_cast<int64_t>(changed.size());
      changes.copy = [&](int64_t first, int64_t count, std::byte* host) {
        arrays_.copy_out(column, std::span(changed).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
                         host);
      };
    }
    to_.changes(column.name, column.type, column.shape(rows()), changes,
                [&](StreamRef stream, int64_t first, std::span<std::byte> piece) {
                  column.memory.read(stream,
                                     static_cast<size_t>((changes_.base()->rows + 1) * column.bytes_per_row + first),
                                     piece.data(), piece.size());
                });
  }
}

StateWriter::Copy RowSaver::memory_of(const RowColumn& column) const {
  return [this, &column](StreamRef stream, int64_t first, std::span<std::byte> piece) {
    arrays_.read(stream, column, first, piece);
  };
}

void RowSaver::save_column(const RowColumn& column) const {
  const int64_t in_memory = rows_.in_memory * column.bytes_per_row;
  to_.array(column.name, column.type, column.shape(rows()),
            [&, memory = memory_of(column)](StreamRef stream, int64_t first, std::span<std::byte> piece) {
              if (const int64_t end = first + static_cast<int64_t>(piece.size()); end > in_memory) {
                const int64_t from = std::max(first, in_memory);
                tier_->read(column, rows_.on_disk, from - in_memory, piece.subspan(static_cast<size_t>(from - first)));
                piece = piece.first(static_cast<size_t>(from - first));
                if (piece.empty()) return;
              }
              memory(stream, first, piece);
            });
}

}  // namespace hctr
