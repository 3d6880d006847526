#include "engine/table/row_store_state.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/table/row_saver.h"

namespace hctr {
namespace {

/// Loads rows 1 to `rows` of an array that has `rows_in_array` rows.
void load_column(const StateReader& from, RowColumn& column, int64_t rows_in_array, int64_t rows) {
  from.array(column.name, column.type, column.shape(rows_in_array),
             [&](StreamRef stream, int64_t first, std::span<const std::byte> piece) {
               const int64_t wanted = rows * column.bytes_per_row - first;
               if (wanted <= 0) return;
               piece = piece.first(std::min(piece.size(), static_cast<size_t>(wanted)));
               column.memory.write(stream, static_cast<size_t>(column.bytes_per_row + first), piece.data(),
                                   piece.size());
             });
}

/// Errors: Error(data) if `rows` saved rows do not fit this store.
void check_rows(const RowStore& store, int64_t rows, int64_t of_direct_keys) {
  const StorePolicy& policy = store.policy();
  const int64_t most = policy.limit() > 0     ? policy.most_rows()
                       : store.tiers().disk() ? kMostRows
                                              : store.rows().most_rows();
  if (of_direct_keys > 0 ? rows != of_direct_keys : rows > most)
    throw Error(Kind::data, cat(store.rows().arrays().label(), ": the checkpoint has ", rows,
                                " rows, but this table has ", of_direct_keys > 0 ? of_direct_keys : most));
}

/// Reserves memory and index entries for the rows of a checkpoint. `in_memory`: how many of these rows are loaded to
/// memory.
void reserve_loaded(RowStore& store, int64_t rows, int64_t in_memory) {
  const RowArrays& arrays = store.rows().arrays();
  in_context([&] { return cat("reserving memory for the ", rows, " rows of ", arrays.label(), " in the checkpoint"); },
             [&] {
               if (in_memory > arrays.capacity()) store.tiers().get_memory(in_memory);
               store.rows().index().grow(in_memory + store.rows().batches().ring_keys());
             });
}

}  // namespace

void save_rows(RowStore& store, StateWriter& to) {
  RowTiers& tiers = store.tiers();
  RowIndex& index = store.rows().index();
  RowChanges& changes = tiers.changes();
  RowDiskTier* const disk = tiers.disk();
  if (disk) tiers.close_up();                 // saved arrays need contiguous row numbers
  const ops::IndexState now = index.state();  // waits for queued work
  HCTR_EXPECT(now.rows == now.ready && now.rows <= now.row_capacity, store.rows().arrays().label(), ": ", now.rows,
              " rows, of which ", now.ready, " are ready");
  const std::shared_ptr<DiskSnapshot> snapshot = tiers.snapshot(to);
  std::vector<DiskRows::Row> read_now;
  if (disk && !snapshot) read_now = disk->disk().sorted_rows();
  const std::span<DiskRows::Row> on_disk = snapshot ? snapshot->rows() : std::span(read_now);
  const int64_t rows = now.rows + static_cast<int64_t>(on_disk.size());
  to.number("rows", rows);
  to.number("first_row", index.view().first_row);
  const StateWriter::Which& which = to.which();
  const RowSaver saver(to, store.rows().arrays(), changes, disk, {now.rows, on_disk, snapshot});
  if (which.base && changes.base() && *which.base == changes.base()->iteration) return saver.save_changes();
  saver.save_all(tiers.ranges() ? tiers.ranges()->order(now.rows, on_disk) : std::vector<int64_t>());
  if (which.base || !changes.are_marked() || (changes.go_by_place() && rows > DiskRows::kMostBaseRows)) return;
  changes.set_base({which.iteration, rows}, disk ? &disk->disk() : nullptr);
  // do not set places for direct keys: their rows have the same place in all checkpoints
  if (!changes.go_by_place() || tiers.ranges()) return;
  for (DiskRows::Row& row : on_disk) row.marks &= static_cast<uint32_t>(~ops::kChangedSinceCheckpoint);
  changes.set_base_places(now.rows, on_disk, {}, disk->disk());
}

void load_rows(RowStore& store, const StateReader& from) {
  RowTiers& tiers = store.tiers();
  RowsInMemory& in_rows = store.rows();
  RowArrays& arrays = in_rows.arrays();
  RowIndex& index = in_rows.index();
  RowDiskTier* const disk = tiers.disk();
  RangesOnDisk* const ranges = tiers.ranges();
  tiers.changes().forget();
  const int64_t rows = from.number("rows");
  check_rows(store, rows, ranges ? ranges->rows() : in_rows.direct_keys().rows());
  const int64_t in_memory =
      disk ? std::min(rows, std::max(arrays.capacity(), tiers.account().rows_in_budget(in_rows.most_rows()))) : rows;
  if (disk) tiers.close_up();
  ops::IndexState now = index.state();  // waits for queued work
  tiers.start_over();
  if (!in_rows.direct()) {
    HCTR_EXPECT(ranges || now.rows == index.shared_rows() || now.rows == rows, arrays.label(), " has ", now.rows,
                " rows, expected none before loading a checkpoint of ", rows, " is loaded");
    reserve_loaded(store, rows, in_memory);
    now = index.state();
  }
  if (ranges) ranges->set_owners(1, in_memory);
  for (RowColumn& column : arrays.columns())
    if (column.saved) load_column(from, column, rows, in_memory);
  if (in_memory < rows) {
    std::function<ops::RowOwner(int64_t)> owner;
    if (ranges) owner = [ranges](int64_t row) { return ranges->owner(row); };
    disk->load(from, in_memory + 1, rows, owner);
  }
  now.rows = now.ready = now.finished = static_cast<uint32_t>(in_memory);
  index.put_state(now);
  arrays.runtime().compute_stream().synchronize();
  if (!in_rows.direct()) index.build();
  index.set_state(now);
  tiers.changes().load(from, in_memory, disk ? &disk->disk() : nullptr);
}

void load_shared_row(RowStore& store, const StateReader& from) {
  RowArrays& arrays = store.rows().arrays();
  HCTR_EXPECT(store.rows().index().shared_rows() == 1, arrays.label(), " has no shared row");
  store.tiers().changes().forget();
  store.rows().index().wait_for_all();
  const StreamRef stream = arrays.runtime().compute_stream();
  for (RowColumn& column : arrays.columns()) {
    if (!column.saved) continue;
    std::vector<std::byte> row(static_cast<size_t>(column.bytes_per_row));
    from.read(from.at(column.name), 0, row);
    column.memory.write(stream, row.size(), row.data(), row.size());  // row 1
    stream.synchronize();
  }
}

}  // namespace hctr
