// A row store in checkpoints.
#include <algorithm>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/table/row_saver.h"
#include "engine/table/row_store.h"
#include "engine/tiers/disk_snapshot.h"

namespace hctr {
namespace {

/// Loads the first rows of an array.
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

}  // namespace

void RowStore::save_state(StateWriter& to) {
  if (tier_) close_up();                       // arrays must be contiguous
  const ops::IndexState now = index_.state();  // waits
  HCTR_EXPECT(now.rows == now.ready && now.rows <= now.row_capacity, arrays_.label(), ": ", now.rows,
              " rows, of which ", now.ready, " are ready");
  const std::shared_ptr<DiskSnapshot> snapshot = snapshot_for_later(to);
  std::vector<DiskRows::Row> read_now;
  if (tier_ && !snapshot) read_now = tier_->disk().sorted_rows();
  const std::span<DiskRows::Row> on_disk = snapshot ? snapshot->rows() : std::span(read_now);
  to.number("rows", now.rows + static_cast<int64_t>(on_disk.size()));
  to.number("first_row", index_.view().first_row);
  const StateWriter::Which& which = to.which();
  const RowSaver saver(to, arrays_, changes_, tier_ ? &*tier_ : nullptr, {now.rows, on_disk, snapshot});
  if (which.base && changes_.base() && *which.base == changes_.base()->iteration) return saver.save_changes();
  saver.save_all(order_of_direct_keys(now.rows, on_disk));
  const int64_t rows = now.rows + static_cast<int64_t>(on_disk.size());
  if (which.base || !changes_.are_marked() || (changes_.go_by_place() && rows > DiskRows::kMostBaseRows)) return;
  changes_.set_base({which.iteration, rows}, own_disk());
  // rows of direct keys have the same places in all checkpoints
  if (!changes_.go_by_place() || !ranges_.empty()) return;
  for (DiskRows::Row& row : on_disk) row.marks &= static_cast<uint32_t>(~ops::kChangedSinceCheckpoint);
  changes_.set_base_places(now.rows, on_disk, {}, tier_->disk());
}

std::shared_ptr<DiskSnapshot> RowStore::snapshot_for_later(const StateWriter& to) {
  if (!tier_ || !to.later() || rows_on_disk() == 0) return nullptr;
  budget_.end_snapshots_on_host(nullptr, false);
  budget_.end_snapshots_on_disk(nullptr, false);
  const int64_t most = budget_.has_host() ? std::min(account_.kept_for_map(), budget_.host_room()) : INT64_MAX;
  std::string why_not;
  // Other ranks wait for a step no longer than --comm-timeout.
  std::shared_ptr<DiskSnapshot> snapshot = tier_->disk().snapshot(most, several_ranks_, why_not);
  if (!snapshot) to.later()->refused = why_not;
  return snapshot;
}

std::optional<std::vector<int32_t>> RowStore::changed_since_model() {
  if (!changes_.known_since_model()) return std::nullopt;
  return changes_.since_model(close_up() + shared_rows());
}

void RowStore::load_state(const StateReader& from) {
  changes_.forget();
  const int64_t rows = from.number("rows");
  const int64_t most = row_limit_ > 0 ? row_capacity_limit_
                       : tier_        ? kMostRows
                                      : most_rows(),
                of_direct_keys = direct() ? keys_.rows() : ranges_.rows();
  if (of_direct_keys > 0 ? rows != of_direct_keys : rows > most)
    throw Error(Kind::data, cat(arrays_.label(), ": the checkpoint has ", rows, " rows, and this table has ",
                                of_direct_keys > 0 ? of_direct_keys : most));
  const int64_t in_memory =
      tier_ ? std::min(rows, std::max(arrays_.capacity(), account_.rows_in_budget(most_rows()))) : rows;
  if (tier_) close_up();
  ops::IndexState now = index_.state();  // waits
  if (!direct()) {
    if (!ranges_.empty()) {
      tier_->clear();
      account_.set_disk(tier_->disk(), tier_->records());
    }
    HCTR_EXPECT(!ranges_.empty() || now.rows == shared_rows() || now.rows == rows, arrays_.label(), " has ", now.rows,
                " rows before a checkpoint of ", rows, " is loaded");
    in_context(
        [&] { return cat("reserving memory for the ", rows, " rows of ", arrays_.label(), " in the checkpoint"); },
        [&] {
          if (in_memory > arrays_.capacity()) grow_rows(in_memory);
          index_.grow(in_memory + ring_keys());
        });
    now = index_.state();
  }
  if (uses_) uses_->number_by_key();
  if (!ranges_.empty()) set_owners(1, in_memory);
  for (Column& column : arrays_.columns())
    if (column.saved) load_column(from, column, rows, in_memory);
  if (in_memory < rows) {
    std::function<ops::RowOwner(int64_t)> owner;
    if (!ranges_.empty()) owner = [this](int64_t row) { return ranges_.index().owner(row); };
    tier_->load(from, in_memory + 1, rows, owner);
  }
  now.rows = now.ready = now.finished = static_cast<uint32_t>(in_memory);
  index_.put_state(now);
  runtime_.compute_stream().synchronize();
  if (!direct()) index_.build();
  index_.set_state(now);
  changes_.load(from, in_memory, own_disk());
}

void RowStore::load_shared_row(const StateReader& from) {
  HCTR_EXPECT(shared_rows() == 1, arrays_.label(), " has no shared row");
  changes_.forget();
  index_.wait_for_all();
  for (Column& column : arrays_.columns()) {
    if (!column.saved) continue;
    std::vector<std::byte> row(static_cast<size_t>(column.bytes_per_row));
    from.read(from.at(column.name), 0, row);
    column.memory.write(runtime_.compute_stream(), row.size(), row.data(), row.size());  // row 1
    runtime_.compute_stream().synchronize();
  }
}

}  // namespace hctr
