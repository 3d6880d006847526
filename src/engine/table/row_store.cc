#include "engine/table/row_store.h"

#include <algorithm>

#include "core/base/expect.h"
#include "engine/spec/setting_words.h"
#include "engine/tiers/tier_plan.h"

namespace hctr {
namespace {

/// The next capacity of a full table.
int64_t half_more(int64_t rows) { return rows + rows / 2; }

const SettingWords& words_of(Runtime& runtime, const TableSpec& spec) {
  return setting_words(budget_of(runtime, spec).limits());
}

/// The sizes of the store's rows in memory, limited by `policy`.
RowsInMemory::Sizes sizes_of(Runtime& runtime, const TableSpec& spec, int64_t batch_keys, int batches_ahead,
                             bool on_disk, const StorePolicy& policy) {
  const int64_t addresses =
      on_disk || spec.direct.empty()
          ? rows_to_reserve(runtime, spec, std::max((batches_ahead + 1) * batch_keys, rows_at_a_time(spec, batch_keys)),
                            policy.most_rows())
          : all_direct_rows(runtime, spec);
  return {.most_rows = policy.limit() > 0 && !on_disk ? policy.most_rows() : addresses,
          .addresses = addresses,
          .batch_keys = batch_keys,
          .batches_ahead = batches_ahead,
          .on_disk = on_disk,
          .removes = policy.rules().removes_rows() || on_disk};
}

}  // namespace

RowStore::RowStore(Runtime& runtime, const TableSpec& spec, int64_t batch_keys, int batches_ahead)
    : RowStore(runtime, spec, batch_keys, batches_ahead, may_be_on_disk(runtime, spec)) {}

RowStore::RowStore(Runtime& runtime, const TableSpec& spec, int64_t batch_keys, int batches_ahead, bool on_disk)
    : runtime_(runtime),
      own_budget_(spec.memory),
      policy_(spec, std::max(batch_keys, spec.most_key_capacity), on_disk, RowArrays::label_of(spec),
              words_of(runtime, spec)),
      rows_(runtime, budget_of(runtime, spec), spec, on_disk ? DirectKeys{} : spec.direct,
            sizes_of(runtime, spec, batch_keys, batches_ahead, on_disk, policy_)),
      tiers_(budget_of(runtime, spec), rows_, spec, on_disk ? spec.direct : DirectKeys{},
             {.on_disk = on_disk,
              .removes_rows = policy_.rules().removes_rows(),
              .places_for_new = !policy_.rules().guards_entry()}),
      key_reports_(runtime, rows_.direct_keys(), rows_.arrays().label(), words_of(runtime, spec)) {
  set_steps_before(0);
  if (rows_.direct()) {
    const int64_t all = rows_.direct_keys().rows();
    in_context([&] { return cat("reserving memory for all ", all, " rows of ", rows_.arrays().label()); },
               [&] { tiers_.get_memory(all); });
    rows_.create_all();
    return;
  }
  get_first_memory(spec);
  if (policy_.rules().shares_row()) rows_.add_shared_row(spec.name);
  if (tiers_.ranges()) tiers_.ranges()->create();
}

void RowStore::get_first_memory(const TableSpec& spec) {
  const RowArrays& arrays = rows_.arrays();
  const int64_t ring_keys = rows_.batches().ring_keys();
  // If rows of direct keys do not all fit in memory, allocate only rows that batches use, because other tables also
  // need initial memory.
  const int64_t hint = tiers_.ranges() ? 0 : spec.row_hint;
  const int64_t plenty = free_memory(runtime_.device()) / 4 / bytes_of_row(spec);
  const int64_t wanted = std::min(std::max(ring_keys, std::min(hint, plenty)), rows_.most_rows());
  // row_hint alone does not justify host memory: beyond ring_keys, allocate only rows that fit on the device.
  int64_t rows = tiers_.account().most_on_device_alone(std::min(wanted, ring_keys), wanted);
  if (tiers_.disk()) {
    const int64_t least = std::min(rows_at_a_time(spec, rows_.batches().keys), arrays.most_rows());
    rows = std::clamp(rows, least, std::max(least, tiers_.account().rows_in_budget(rows_.most_rows())));
  }
  tiers_.get_memory(rows);
  rows_.index().grow(std::max(rows, ring_keys));
}

void RowStore::set_steps_before(int64_t steps) {
  if (!rows_.arrays().access_stats().steps_before) return;
  rows_.index().wait_for_all();
  if (tiers_.disk()) tiers_.disk()->forget_steps();
  rows_.arrays().set_steps_before(static_cast<uint32_t>(steps));
}

void RowStore::reserve_rows() {
  tiers_.swap();
  if (rows_.direct()) {
    key_reports_.check();
    rows_.index().count_batch();
    return;
  }
  const auto check = [&] {
    if (!policy_.rows_may_leave()) check_limit();
  };
  check();
  const int64_t at_most = get_memory().at_most;
  check();
  policy_.expect(at_most);
  rows_.index().count_batch();
}

bool RowStore::reserve_memory() { return get_memory().grew; }

RowStore::Growth RowStore::get_memory() {
  if (rows_.direct()) return {rows_.most_rows(), false};
  RowIndex& index = rows_.index();
  const RowArrays& arrays = rows_.arrays();
  const int64_t batch_keys = rows_.batches().keys, ring_keys = rows_.batches().ring_keys();
  RowIndex::Progress now = index.progress();
  const int64_t queued = index.queued(now);
  const int64_t at_most = policy_.most_after(counted(now.rows).all() + (queued + 1) * batch_keys, batch_keys);
  // With a disk tier, bring_rows() allocates memory or evicts rows. Only the current capacity matters here.
  const int64_t in_memory = tiers_.disk() ? std::min(now.rows + (queued + 1) * batch_keys, arrays.capacity()) : at_most;
  if (in_memory <= arrays.capacity() && index.has_room(in_memory)) return {at_most, false};

  now = index.wait_for_all();
  const int64_t rows = counted(now.rows).all();
  if (!policy_.rows_may_leave() && policy_.beyond(rows)) return {at_most, false};  // reserve_rows() reports the error
  const int64_t needed = std::min(now.rows + batch_keys, policy_.limit() > 0 ? policy_.most_rows() : kMostRows);
  int64_t ample = std::min(std::max(now.rows + ring_keys, half_more(arrays.capacity())), rows_.most_rows());
  // Allocating host memory is slow, so if host memory is needed, reserve only a few more rows than the batches may add.
  if (ample > arrays.capacity() && tiers_.account().rows_on_device(ample) < ample)
    ample = std::min(ample, std::max(now.rows + ring_keys, arrays.capacity() + arrays.capacity() / 8));
  bool grew = false;
  if (!tiers_.disk() && now.rows + ring_keys > arrays.capacity())
    grew |= tiers_.grow(needed, ample, arrays.capacity(), [this](int64_t most) { tiers_.get_memory(most); });
  // Until the exceeded limit is detected, keys that get no row also need index entries.
  grew |= tiers_.grow(now.rows + batch_keys, now.rows + ring_keys, index.most_keys(),
                      [&](int64_t keys) { index.grow(keys); });
  if (index.has_marks() && !index.has_room(now.rows + batch_keys)) index.build();
  return {rows + batch_keys, grew};
}

void RowStore::reserve_import(int64_t rows) {
  if (rows_.direct() || tiers_.disk()) return;
  RowIndex& index = rows_.index();
  const int64_t capacity = rows_.arrays().capacity();
  const int64_t keys = index.wait_for_all().rows + rows + rows_.batches().keys,
                wanted = std::min(keys, rows_.most_rows());
  // If memory is not available now, reserve_memory() will request it again later and report the error.
  tiers_.grow(capacity, wanted, capacity, [this](int64_t most) { tiers_.get_memory(most); });
  tiers_.grow(index.most_keys(), keys, index.most_keys(), [&](int64_t most) { index.grow(most); });
}

void RowStore::confirm_capacity() const {
  if (!policy_.near_limit()) return;
  runtime_.prepare_stream().synchronize();
  if (!policy_.rows_may_leave()) check_limit();
}

void RowStore::assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots) {
  const auto rows = static_cast<int64_t>(keys.size());
  HCTR_EXPECT(rows_.index().state().rows == 0 && !rows_.direct(), rows_.arrays().label(), ": ", rows,
              " keys can be assigned only to an empty hash index");
  if (rows > rows_.arrays().capacity())
    in_context([&] { return cat("reserving memory for ", rows, " frequent rows of ", rows_.arrays().label()); },
               [&] { tiers_.get_memory(rows); });
  rows_.index().grow(rows);
  rows_.assign(keys, slots);
}

}  // namespace hctr
