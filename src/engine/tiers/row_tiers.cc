#include "engine/tiers/row_tiers.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "engine/spec/setting_words.h"
#include "engine/tiers/tier_plan.h"

namespace hctr {
namespace {

/// Bytes of the list of keys that have no row in memory, for a batch in which every key is missing.
int64_t lookup_bytes(Device device, int64_t most_keys, bool on_disk) {
  return on_disk && device.is_cuda() ? (most_keys + 1) * static_cast<int64_t>(sizeof(ops::MissingKey)) : 0;
}

/// Refuses a disk tier if every step changes every row, because no row could stay on disk. Errors: Error(config) or
/// Error(usage).
void refuse_where_all_rows_change(const RowMemoryLimits& limits, const TableSpec& spec) {
  if (!spec.changes_every_row()) return;
  const SettingWords& words = setting_words(limits);
  throw Error(limits.of_options ? Kind::usage : Kind::config,
              cat("table '", spec.name, "': its optimizer with ", words.global,
                  " updates every row in every step, so rows cannot be on disk: ", words.not_global));
}

}  // namespace

RowTiers::RowTiers(RowMemory& budget, RowsInMemory& rows, const TableSpec& spec, DirectKeys ranges, const Rules& rules)
    : budget_(budget),
      rows_(rows),
      arrays_(rows.arrays()),
      index_(rows.index()),
      runtime_(arrays_.runtime()),
      rows_move_(rows_may_move(runtime_, spec)),
      several_ranks_(spec.ranks > 1),
      account_(budget_, arrays_, index_,
               {.counts = number_bytes_of_row(spec) > 0,
                .direct = rows.direct().has_value(),
                .removes_rows = rules.removes_rows || rules.on_disk,
                .rows_move = rows_move_,
                .spare_keys = rows.batches().ring_keys(),
                .lookup_bytes = lookup_bytes(runtime_.device(), std::max(rows.batches().keys, spec.eval_key_capacity),
                                             rules.on_disk)}),
      changes_(arrays_) {
  if (rules.on_disk) {
    refuse_where_all_rows_change(budget_.limits(), spec);
    disk_.emplace(budget_, rows_,
                  RowDiskTier::Rules{.rows_at_a_time = rows_at_a_time(spec, rows_.batches().keys),
                                     .batch_keys = rows_.batches().keys,
                                     .batches_ahead = static_cast<size_t>(rows_.batches().ahead),
                                     .all_exist = !ranges.empty(),
                                     .places_for_new = rules.places_for_new});
    account_.set_disk(disk_->disk(), disk_->records());
    if (!ranges.empty()) ranges_.emplace(budget_, rows_, *disk_, std::move(ranges));
  }
  budget_.join(this);
}

RowTiers::~RowTiers() { budget_.leave(this); }

bool RowTiers::grow(int64_t needed, int64_t ample, int64_t have, const std::function<void(int64_t)>& grow_to) {
  if (std::max(needed, ample) <= have) return false;
  budget_.end_snapshots_on_host(nullptr, false);
  try {
    grow_to(std::max(ample, needed));
    return true;
  } catch (const Error&) {
    if (needed <= have) return true;
  }
  in_context([&] { return cat("reserving memory for more rows: ", arrays_.label(), " has ", index_.progress().rows); },
             [&] {
               try {
                 grow_to(needed);
               } catch (const Error&) {
                 if (!budget_.end_snapshots_on_host(nullptr, true)) throw;
                 grow_to(needed);
               }
             });
  return true;
}

void RowTiers::get_memory(int64_t rows) {
  if (rows > arrays_.most_rows())
    throw Error(Kind::device, cat(rows, " rows are needed, but the memory of ", to_string(runtime_.device()), " holds ",
                                  arrays_.most_rows()));
  const bool moves = account_.rows_on_device(rows) < rows && rows_move_;
  account_.check_host_room(rows, account_.rows_on_device(rows, moves), moves);
  make_device_room(rows, moves);
  rows_.grow_besides_numbers(rows);
  if (moves && !uses_) start_uses(rows);
  const int64_t on_device = account_.rows_on_device(rows);
  arrays_.grow_numbers(rows, on_device);
  if (uses_ && !uses_->counts() && on_device < rows) uses_->note_border();
  rows_.open(rows);
  if (disk_) disk_->set_capacity(rows);
  account_.count();
}

void RowTiers::start_uses(int64_t rows) {
  uses_.emplace(arrays_, index_, changes_, rows, rows_.direct().has_value());
  account_.set_uses(uses_->buffer_bytes());
}

int64_t RowTiers::most_to_host() const { return account_.most_to_host(); }

int64_t RowTiers::move_to_host(int64_t wanted) {
  const auto staying = account_.rows_to_stay(wanted);
  if (!staying) return 0;
  const bool starts_to_move = account_.starts_to_move();
  const int64_t uses = account_.bytes_to_start(arrays_.capacity()), before = arrays_.number_bytes_on_device();
  arrays_.move_to_host(*staying);
  if (starts_to_move) start_uses(arrays_.capacity());
  if (uses_) uses_->note_border();
  account_.count();
  return before - arrays_.number_bytes_on_device() - uses;
}

void RowTiers::make_device_room(int64_t rows, bool moving) {
  const auto missing = [&] { return account_.missing_on_device(rows, moving); };
  // The bytes of this table's use counts. missing() already includes these bytes, and move_to_host() subtracts them
  // from the bytes that it frees.
  const auto counted = [&] { return moving ? account_.bytes_to_start(rows) : 0; };
  const auto most = [&] {
    const int64_t own = most_to_host();
    return (own > 0 ? own + counted() : 0) + budget_.others_most_to_host(this);
  };
  // Move nothing if a move would not free enough bytes; the caller tries fewer rows in that case.
  const bool enough = missing() <= 0 || missing() <= most();
  if (enough && missing() > 0) move_to_host(missing() - counted());
  // move more if the first move was too small: use counts of more rows can need another allocation
  if (enough && missing() > 0) move_to_host(missing());
  if (enough && missing() > 0) budget_.others_move_to_host(this, missing());
  if (missing() > 0) account_.throw_missing_on_device(rows, missing(), most());
}

HostRows RowTiers::host_rows() {
  const int64_t rows = static_cast<int64_t>(index_.state().finished) - index_.shared_rows();
  HostRows on_host;
  for (const RowColumn& column : arrays_.columns()) {
    const auto device = static_cast<int64_t>(column.memory.device_bytes());
    if (static_cast<int64_t>(column.bytes_to(rows)) <= device || column.memory.bytes() == column.memory.device_bytes())
      continue;
    on_host.bytes += static_cast<int64_t>(column.bytes_to(rows)) - device;
    on_host.rows = std::max(on_host.rows, std::min(rows, rows - device / column.bytes_per_row + 1));
  }
  const std::span<const int32_t> left = rows_.free_places().rows();
  if (on_host.rows > 0) on_host.rows -= left.end() - std::upper_bound(left.begin(), left.end(), rows - on_host.rows);
  if (uses_) uses_->report(on_host);
  return on_host;
}

void RowTiers::swap() {
  if (uses_) uses_->swap(budget_.limits().move_every, budget_.limits().swap_always, rows_.free_places().rows());
}

void RowTiers::count_batch(const ops::RowGroups& groups, int64_t key_capacity) {
  if (disk_) disk_->count_batch_rows(groups.counts);
  if (uses_) uses_->count(groups, key_capacity);
}

void RowTiers::follow(Context& ctx, const ops::RowMoves& moves, int64_t rows) {
  changes_.follow(ctx, moves, rows);
  if (disk_) disk_->note_closed(moves.count);
}

void RowTiers::start_over() {
  if (ranges_) {
    disk_->clear();
    account_.set_disk(disk_->disk(), disk_->records());
  }
  if (uses_) uses_->number_by_key();
}

}  // namespace hctr
