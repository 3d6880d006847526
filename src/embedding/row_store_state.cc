// A row store in checkpoints.
#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/error.h"
#include "device/copy.h"
#include "embedding/row_store.h"

namespace hctr {

void RowStore::save_state(StateWriter& to) {
  const ops::IndexState now = state();  // waits
  HCTR_EXPECT(now.rows == now.ready && now.rows <= now.row_capacity, label_, ": ", now.rows, " rows, of which ",
              now.ready, " are ready");
  to.number("rows", now.rows);
  to.number("first_row", index_.first_row);
  for (const Column& column : columns_) save_column(to, column, now.rows);
}

void RowStore::save_column(StateWriter& to, const Column& column, int64_t rows) {
  to.array(column.name, column.type, column.shape(rows),
           [&](StreamRef stream, int64_t first, std::span<std::byte> piece) {
             column.memory.read(stream, static_cast<size_t>(column.bytes_per_row + first), piece.data(), piece.size());
           });
}

void RowStore::load_column(const StateReader& from, Column& column, int64_t rows) {
  from.array(column.name, column.type, column.shape(rows),
             [&](StreamRef stream, int64_t first, std::span<const std::byte> piece) {
               column.memory.write(stream, static_cast<size_t>(column.bytes_per_row + first), piece.data(),
                                   piece.size());
             });
}

void RowStore::load_state(const StateReader& from) {
  const int64_t rows = from.number("rows");
  if (direct() ? rows != keys_.rows() : rows > most_rows())
    throw Error(Kind::data, cat(label_, ": the checkpoint has ", rows, " rows, and this table has ",
                                direct() ? keys_.rows() : most_rows()));
  ops::IndexState now = state();  // waits
  if (!direct()) {
    HCTR_EXPECT(now.rows == shared_rows() || now.rows == rows, label_, " has ", now.rows,
                " rows before a checkpoint of ", rows, " is loaded");
    in_context([&] { return cat("reserving memory for the ", rows, " rows of ", label_, " in the checkpoint"); },
               [&] {
                 if (rows > capacity_) grow_rows(rows);
                 grow_index(rows + ring_keys());
               });
    now = state();
  }
  for (Column& column : columns_) load_column(from, column, rows);
  now.rows = now.ready = now.finished = static_cast<uint32_t>(rows);
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, state_.data(), &now, sizeof now);
  if (!direct()) {
    zero_bytes(stream, entries_.data(), static_cast<size_t>(entry_count_) * sizeof(ops::IndexEntry));
    Context ctx(runtime_, stream);
    ops::index_rebuild(ctx, index_);
  }
  stream.synchronize();
  std::atomic_ref<uint64_t>(*host_word())
      .store(static_cast<uint64_t>(now.batches) << 32 | now.rows, std::memory_order_release);
}

void RowStore::load_shared_row(const StateReader& from) {
  HCTR_EXPECT(shared_rows() == 1, label_, " has no shared row");
  wait_for_all();
  for (Column& column : columns_) {
    std::vector<std::byte> row(static_cast<size_t>(column.bytes_per_row));
    from.read(from.at(column.name), 0, row);
    column.memory.write(runtime_.compute_stream(), row.size(), row.data(), row.size());  // row 1
    runtime_.compute_stream().synchronize();
  }
}

}  // namespace hctr
