#include "engine/table/row_store.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>

#include "core/device/copy_bytes.h"
#include "engine/spec/setting_words.h"

namespace hctr {
namespace {

/// With eviction, a batch is inserted before rows are removed for it; the shared row is one more. With a disk, a batch
/// is also inserted before the rows in both places are counted.
int64_t row_capacity_limit(const TableSpec& spec, int64_t batch_keys, bool on_disk) {
  if (spec.policy.when_full == WhenFull::error && !on_disk) return std::min(spec.row_limit, kMostRows);
  return std::min(spec.row_limit + batch_keys + spec.policy.shares_row(), kMostRows);
}

int64_t rows_to_reserve(Runtime& runtime, const TableSpec& spec, int64_t least, int64_t most) {
  const RowMemory& budget = budget_of(runtime, spec);
  const int64_t numbers = number_bytes_of_row(spec), rest = bytes_of_row(spec) - numbers;
  int64_t rows = free_memory(runtime.device()) / bytes_of_row(spec);
  if (runtime.device().is_cuda() && budget.has_host() && numbers > 0) {
    const int64_t more = rows + budget.host_room() / numbers;
    rows = rest > 0 ? std::min(more, free_memory(runtime.device()) / rest) : more;
  }
  if (budget.has_disk() && numbers > 0)  // memory has no room for more; addresses may be limited too
    rows = std::min(rows,
                    (budget.limits().device.value_or(free_memory(runtime.device())) + budget.limits().host) / numbers);
  const int64_t fitting = std::max(rows, least);
  return std::min({fitting, kMostRows, spec.row_limit > 0 ? most : kMostRows});
}

/// Whether all rows of direct keys fit in memory.
bool all_rows_fit(Runtime& runtime, const TableSpec& spec) {
  const RowMemory& budget = budget_of(runtime, spec);
  const bool two_memories = runtime.device().is_cuda() || budget.limits().device != 0;
  const int64_t rows = spec.direct.rows(), numbers = rows * number_bytes_of_row(spec),
                rest = rows * (bytes_of_row(spec) + (two_memories ? bytes_of_moving_row(true) : 0)) - numbers,
                device = std::min(budget.device_room(), free_memory(runtime.device())),
                granules = 2 * (1 + spec.optimizer.states()) *
                           static_cast<int64_t>(ReservedBuffer(runtime.device(), 1).granularity());
  return rest < (two_memories ? device : free_memory(runtime.device())) &&
         numbers + rest + granules <= budget.host_room() + device;
}

/// Whether rows of the table may be on disk. Rows replicated on every rank stay in memory; so do rows of direct keys if
/// all of them fit: they then need no index.
bool may_be_on_disk(Runtime& runtime, const TableSpec& spec) {
  return budget_of(runtime, spec).has_disk() && !spec.fixed_keys && spec.rows_move && number_bytes_of_row(spec) > 0 &&
         (spec.direct.empty() || (!spec.changes_every_row() && !all_rows_fit(runtime, spec)));
}

/// Bytes of the list of keys without a row in memory: in the worst case a whole batch.
int64_t lookup_bytes(Runtime& runtime, const TableSpec& spec, int64_t batch_keys, bool on_disk) {
  if (!on_disk || !runtime.device().is_cuda()) return 0;
  return (std::max(batch_keys, spec.eval_key_capacity) + 1) * static_cast<int64_t>(sizeof(ops::MissingKey));
}

/// Errors: Error(config) if rows cannot be on disk.
void refuse_where_all_rows_change(const RowMemoryLimits& limits, const TableSpec& spec) {
  if (!spec.changes_every_row()) return;
  const SettingWords& words = setting_words(limits);
  throw Error(limits.of_options ? Kind::usage : Kind::config,
              cat("table '", spec.name, "': its optimizer with ", words.global,
                  " changes every row in every step, so no row can be on disk: ", words.not_global));
}

}  // namespace

RowStore::RowStore(Runtime& runtime, const TableSpec& spec, int64_t batch_keys, int batches_ahead)
    : runtime_(runtime),
      own_budget_(spec.memory),
      budget_(budget_of(runtime, spec)),
      on_disk_(may_be_on_disk(runtime, spec)),
      several_ranks_(spec.ranks > 1),
      keys_(on_disk_ ? DirectKeys{} : spec.direct),
      ranges_(keys_.empty() ? spec.direct : DirectKeys{}),
      batch_keys_(batch_keys),
      batches_ahead_(batches_ahead),
      rows_move_(spec.rows_move && !spec.fixed_keys && number_bytes_of_row(spec) > 0 &&
                 budget_.limits().move_every > 0 && (runtime.device().is_cuda() || budget_.limits().device != 0)),
      row_limit_(spec.direct.empty() ? spec.row_limit : 0),
      row_capacity_limit_(row_capacity_limit(spec, std::max(batch_keys, spec.most_key_capacity), on_disk_)),
      policy_(spec.policy),
      limit_setting_(spec.limit_setting),
      arrays_(runtime, budget_, spec, on_disk_,
              keys_.empty()
                  ? rows_to_reserve(runtime, spec, std::max((batches_ahead + 1) * batch_keys, rows_at_a_time(spec)),
                                    row_capacity_limit_)
                  : all_rows(spec)),
      index_(
          arrays_,
          keys_.empty() ? arrays_.most_rows() + (batches_ahead + 1) * std::max(batch_keys, spec.most_key_capacity) : 0,
          policy_.removes_rows() || on_disk_ ? ops::removal_bytes(runtime.device(), arrays_.most_rows()) : 0),
      account_(budget_, arrays_, index_,
               {.counts = number_bytes_of_row(spec) > 0,
                .direct = !keys_.empty(),
                .removes_rows = policy_.removes_rows() || on_disk_,
                .rows_move = rows_move_,
                .spare_keys = ring_keys(),
                .lookup_bytes = lookup_bytes(runtime, spec, batch_keys, on_disk_)}),
      changes_(arrays_),
      spans_(runtime.device(), keys_.spans.size() * sizeof(ops::KeySpan)),
      out_of_range_state_(runtime.device(), keys_.empty() ? 0 : 2 * sizeof(ops::OutOfRangeState)),
      out_of_range_keys_(runtime.device(), 2 * sizeof(ops::OutOfRangeKey)) {
  set_steps_before(0);
  if (!keys_.empty()) {
    allocate_all_rows();
    budget_.join(this);
    return;
  }
  // If not all rows fit, a table takes only the memory that batches need, because other tables must start, too.
  const int64_t hint = ranges_.empty() ? spec.row_hint : 0;
  const int64_t plenty = free_memory(runtime.device()) / 4 / bytes_of_row(spec);
  const int64_t wanted = std::min(std::max(ring_keys(), std::min(hint, plenty)), most_rows());
  // A hint takes no host memory.
  int64_t rows = account_.most_on_device_alone(std::min(wanted, ring_keys()), wanted);
  if (on_disk_) {
    refuse_where_all_rows_change(budget_.limits(), spec);
    tier_.emplace(budget_, arrays_, index_, changes_,
                  RowDiskTier::Rules{.rows_at_a_time = rows_at_a_time(spec),
                                     .batch_keys = batch_keys,
                                     .batches_ahead = static_cast<size_t>(batches_ahead),
                                     .all_exist = !ranges_.empty(),
                                     .places_for_new = !policy_.guards_entry()});
    account_.set_disk(tier_->disk(), tier_->records());
    const int64_t least = std::min(rows_at_a_time(spec), arrays_.most_rows());
    rows = std::clamp(rows, least, std::max(least, account_.rows_in_budget(most_rows())));
  }
  grow_rows(rows);
  index_.grow(std::max(rows, ring_keys()));
  if (policy_.shares_row()) add_shared_row(spec);
  if (!ranges_.empty()) create_rows_in_tiers();
  budget_.join(this);
}

RowStore::~RowStore() { budget_.leave(this); }

int64_t RowStore::rows_at_a_time(const TableSpec& spec) const {
  return std::max(batch_keys_, spec.eval_key_capacity) + spec.policy.shares_row();
}

void RowStore::add_shared_row(const TableSpec& spec) {
  ops::RowInit init = arrays_.init();
  init.key = random_key(runtime_.options().seed, random_stream("shared row:" + spec.name));
  init.slot_bounds = nullptr;
  Context ctx(runtime_, runtime_.compute_stream());
  zero_bytes(ctx.stream(), arrays_.keys() + 1, sizeof(int64_t));  // the row's random numbers are those of key 0
  if (arrays_.slots()) zero_bytes(ctx.stream(), arrays_.slots() + 1, sizeof(int32_t));
  index_.set(&ops::IndexState::rows, uint32_t{1});
  ops::init_new_rows(ctx, index_.view(), init, arrays_.data());
  index_.set(&ops::IndexState::ready, uint32_t{1});
  index_.set(&ops::IndexState::finished, uint32_t{1});
  index_.share_first_row();
  index_.tell_host({0, 1});
}

void RowStore::set_steps_before(int64_t steps) {
  if (!arrays_.access_stats().steps_before) return;
  index_.wait_for_all();
  if (tier_) tier_->forget_steps();
  arrays_.set_steps_before(static_cast<uint32_t>(steps));
}

int RowStore::row_bits() const {
  constexpr int kOfAPass = 8;  // radix sort: bits per pass
  const int most = std::bit_width(static_cast<uint64_t>(most_rows()));
  if (!sorts_bits_in_use_) return most;
  const int in_use = std::bit_width(static_cast<uint64_t>(arrays_.capacity()));
  return std::min(most, (in_use + kOfAPass - 1) / kOfAPass * kOfAPass);
}

void RowStore::sort_bits_in_use() {
  if (on_disk_) return;  // memory grows while the step is being recorded
  sorts_bits_in_use_ = true;
  recorded_bits_ = row_bits();
}

bool RowStore::consume_rerecord_flag() {
  const int bits = row_bits();
  return sorts_bits_in_use_ && std::exchange(recorded_bits_, bits) != bits;
}

int64_t RowStore::finished_rows() {
  const ops::IndexState now = index_.state();
  if (tier_) tier_->drop_refused_rows();
  return static_cast<int64_t>(now.finished) - shared_rows() - free_rows();
}

}  // namespace hctr
