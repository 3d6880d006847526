#include "embedding/row_store.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>

#include "device/copy.h"

namespace hctr {
namespace {

/// With eviction, a batch is inserted before rows are removed for it; the shared row is one more. With a disk likewise
/// before the rows in both are counted.
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
  if (budget.has_disk() && numbers > 0)  // memory holds no more; addresses may be limited too
    rows = std::min(rows,
                    (budget.limits().device.value_or(free_memory(runtime.device())) + budget.limits().host) / numbers);
  const int64_t fitting = std::max(rows, least);
  return std::min({fitting, kMostRows, spec.row_limit > 0 ? most : kMostRows});
}

/// The rows that one lookup may need at a time; the shared row never leaves.
int64_t rows_at_a_time(const TableSpec& spec, int64_t batch_keys) {
  return std::max(batch_keys, spec.eval_key_capacity) + spec.policy.shares_row();
}

/// Whether memory has room for all rows of direct keys.
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

/// Whether rows of the table may be on a disk. Those that every rank has stay in memory, and those of direct keys where
/// all of them fit: then they need no index.
bool may_be_on_disk(Runtime& runtime, const TableSpec& spec) {
  return budget_of(runtime, spec).has_disk() && !spec.fixed_keys && spec.rows_move && number_bytes_of_row(spec) > 0 &&
         (spec.direct.empty() || (!spec.changes_every_row() && !all_rows_fit(runtime, spec)));
}

/// Of rows that are copied to the host, one of whose arrays has rows of so many bytes. On a CPU it is memory that rows
/// could have.
int64_t staging_bytes(Device device, int64_t largest_row) {
  if (!device.is_cuda()) return (int64_t{64} << 10) + largest_row;
  return std::max(int64_t{4} << 20, (ops::RecordParts::kMost + 2) * largest_row + (int64_t{1} << 10));
}

/// Of the list of keys that have no row in memory: in the worst case all of a batch.
int64_t lookup_bytes(const TableSpec& spec, int64_t batch_keys) {
  return (std::max(batch_keys, spec.eval_key_capacity) + 1) * static_cast<int64_t>(sizeof(ops::MissingKey));
}

}  // namespace

RowStore::RowStore(Runtime& runtime, const TableSpec& spec, int64_t batch_keys, int batches_ahead)
    : runtime_(runtime),
      own_budget_(spec.memory),
      budget_(budget_of(runtime, spec)),
      label_(cat("table '", spec.name, "' on rank ", spec.rank)),
      on_disk_(may_be_on_disk(runtime, spec)),
      several_ranks_(spec.ranks > 1),
      keys_(on_disk_ ? DirectKeys{} : spec.direct),
      ranges_(keys_.empty() ? spec.direct : DirectKeys{}),
      batch_keys_(batch_keys),
      batches_ahead_(batches_ahead),
      rows_move_(spec.rows_move && !spec.fixed_keys && number_bytes_of_row(spec) > 0 &&
                 budget_.limits().move_every > 0 && (runtime.device().is_cuda() || budget_.limits().device != 0)),
      one_memory_(!runtime.device().is_cuda() && budget_.limits().device == 0),
      in_budget_(number_bytes_of_row(spec) > 0),
      least_rows_(rows_at_a_time(spec, batch_keys)),
      lookup_bytes_(on_disk_ && runtime.device().is_cuda() ? lookup_bytes(spec, batch_keys) : 0),
      row_limit_(spec.direct.empty() ? spec.row_limit : 0),
      row_capacity_limit_(row_capacity_limit(spec, batch_keys, on_disk_)),
      policy_(spec.policy),
      limit_setting_(spec.limit_setting),
      reserved_rows_(keys_.empty()
                         ? rows_to_reserve(runtime, spec,
                                           std::max((batches_ahead + 1) * batch_keys, rows_at_a_time(spec, batch_keys)),
                                           row_capacity_limit_)
                         : all_rows(spec)),
      entries_(runtime.device(),
               std::max(static_cast<size_t>(entries_for(keys_.empty() ? reserved_rows_ + ring_keys() : 0)) *
                            sizeof(ops::IndexEntry),
                        policy_.removes_rows() || on_disk_ ? ops::removal_bytes(runtime.device(), reserved_rows_) : 0)),
      state_(runtime.device(), sizeof(ops::IndexState)),
      slot_bounds_(runtime.device(), spec.slot_bounds.size() * sizeof(float)),
      spans_(runtime.device(), keys_.spans.size() * sizeof(ops::KeySpan)),
      out_of_range_state_(runtime.device(), keys_.empty() ? 0 : 2 * sizeof(ops::OutOfRangeState)),
      steps_before_(runtime.device(), policy_.tracks_last_step() || on_disk_ ? sizeof(uint32_t) : 0),
      host_word_(runtime.device(), sizeof(uint64_t)),
      out_of_range_keys_(runtime.device(), 2 * sizeof(ops::OutOfRangeKey)) {
  HCTR_EXPECT(spec.slot_bounds.empty() || spec.slot_bounds.size() == static_cast<size_t>(spec.slots),
              spec.slot_bounds.size(), " initial bounds for ", spec.slots, " slots");
  data_.dim = spec.dim;
  index_.row_keys = add_column<int64_t>("keys", "i64", keys_.empty(), 1);
  index_.row_slots = add_column<int32_t>("slots", "i32", keys_.empty() && spec.identity_by_slot, 1);
  for (Column& column : columns_) column.saved = ranges_.empty();
  data_.identity = {index_.row_keys, index_.row_slots, {}};
  data_.vectors = add_numbers("vectors", spec.storage, spec.dim);
  data_.state_dim = spec.state_dim();
  for (int s = 0; s < spec.optimizer.states(); ++s) {
    data_.states[s] = add_numbers(cat("state", s), spec.stored_states(), data_.state_dim);
    init_.state_start[s] = spec.optimizer.start(s);
  }
  data_.last_step = add_column<int32_t>("last_step", "i32", spec.update == UpdateType::lazy_global, 1);
  data_.touched = add_column<uint8_t>("touched", "u8", spec.changes_every_row(), 1);
  access_stats_.last_seen = add_column<uint32_t>("last_seen", "u32", policy_.tracks_last_step() || on_disk_, 1);
  if (access_stats_.last_seen) columns_.back().saved = policy_.tracks_last_step();
  access_stats_.occurrences = add_column<uint32_t>("occurrences", "u32", policy_.counts_occurrences() || on_disk_, 1);
  if (access_stats_.occurrences) columns_.back().saved = policy_.counts_occurrences();
  if (spec.marks_changes && !spec.changes_every_row()) {
    marks_.emplace(runtime.device(), static_cast<size_t>(reserved_rows_ + 1));
    access_stats_.changed = reinterpret_cast<uint8_t*>(marks_->data());
    base_places_ = add_column<int32_t>("base_places", "i32", on_disk_, 1);
    if (base_places_) columns_.back().saved = false;
  }
  left_ = reinterpret_cast<ops::Fate*>(add_column<uint8_t>("left", "u8", on_disk_, 1));
  if (left_) columns_.back().saved = false;
  if (marks_ || on_disk_) {
    int64_t largest = 0;
    for (const Column& column : columns_) largest = std::max(largest, column.bytes_per_row);
    staging_.emplace(runtime.device(), static_cast<size_t>(staging_bytes(runtime.device(), largest)));
  }
  if (access_stats_.last_seen) access_stats_.steps_before = reinterpret_cast<const uint32_t*>(steps_before_.data());
  set_steps_before(0);
  index_.entries = reinterpret_cast<ops::IndexEntry*>(entries_.data());
  index_.state = reinterpret_cast<ops::IndexState*>(state_.data());

  init_.key = random_key(runtime.options().seed, random_stream("table:" + spec.name));
  data_.rounding = random_key(runtime.options().seed, random_stream("rounding:" + spec.name));
  init_.bound = spec.init_bound;
  init_.all_states = on_disk_;
  init_.pieces = static_cast<int32_t>(spec.pieces);
  init_.piece_dim = static_cast<int32_t>(spec.pieces > 1 ? spec.dim : 0);
  if (!spec.slot_bounds.empty()) {
    init_.slot_bounds = reinterpret_cast<const float*>(slot_bounds_.data());
    copy_bytes(runtime.compute_stream(), slot_bounds_.data(), spec.slot_bounds.data(), slot_bounds_.bytes());
    runtime.compute_stream().synchronize();
  }
  if (!keys_.empty()) {
    allocate_all_rows();
    budget_.join(this);
    return;
  }
  // Of rows that do not all fit, a table takes memory for those that batches use: other tables have to begin, too.
  const int64_t hint = ranges_.empty() ? spec.row_hint : 0;
  const int64_t plenty = free_memory(runtime.device()) / 4 / bytes_of_row(spec);
  int64_t rows = std::min(std::max(ring_keys(), std::min(hint, plenty)), most_rows());
  int64_t too_many = rows + 1;  // a hint takes no memory of the host
  for (rows = std::min(rows, ring_keys()); too_many - rows > 1;) {
    const int64_t middle = rows + (too_many - rows) / 2;
    (rows_on_device(middle) == middle ? rows : too_many) = middle;
  }
  if (on_disk_) {
    open_disk(spec);
    const int64_t least = std::min(rows_at_a_time(spec, batch_keys_), reserved_rows_);
    rows = std::clamp(rows, least, std::max(least, rows_in_budget()));
  }
  grow_rows(rows);
  grow_index(std::max(rows, ring_keys()));
  if (policy_.shares_row()) add_shared_row(spec);
  if (!ranges_.empty()) create_rows_in_tiers();
  budget_.join(this);
}

RowStore::~RowStore() {
  budget_.leave(this);
  budget_.take_device(-besides_.on_device);
  budget_.take_host(-besides_.on_host);
}

void RowStore::add_shared_row(const TableSpec& spec) {
  ops::RowInit init = init_;
  init.key = random_key(runtime_.options().seed, random_stream("shared row:" + spec.name));
  init.slot_bounds = nullptr;
  Context ctx(runtime_, runtime_.compute_stream());
  zero_bytes(ctx.stream(), index_.row_keys + 1, sizeof(int64_t));  // the row's random numbers are those of key 0
  if (index_.row_slots) zero_bytes(ctx.stream(), index_.row_slots + 1, sizeof(int32_t));
  set_in_state(offsetof(ops::IndexState, rows), uint32_t{1});
  ops::init_new_rows(ctx, index_, init, data_);
  set_in_state(offsetof(ops::IndexState, ready), uint32_t{1});
  set_in_state(offsetof(ops::IndexState, finished), uint32_t{1});
  index_.first_row = 2;
  *host_word() = 1;
}

void RowStore::set_steps_before(int64_t steps) {
  if (!access_stats_.steps_before) return;
  wait_for_all();
  recent_steps_.clear();
  const auto modulo = static_cast<uint32_t>(steps);
  copy_bytes(runtime_.compute_stream(), steps_before_.data(), &modulo, sizeof modulo);
  runtime_.compute_stream().synchronize();
}

template <class T>
T* RowStore::add_column(std::string name, std::string_view type, bool wanted, int64_t elements_per_row, bool numbers) {
  if (!wanted || elements_per_row == 0) return nullptr;
  const int64_t bytes = elements_per_row * static_cast<int64_t>(sizeof(T));
  columns_.push_back({.memory = ReservedBuffer(runtime_.device(), static_cast<size_t>((reserved_rows_ + 1) * bytes),
                                               numbers ? &budget_ : nullptr),
                      .bytes_per_row = bytes,
                      .name = std::move(name),
                      .type = std::string(type),
                      .elements_per_row = elements_per_row,
                      .numbers = numbers});
  return reinterpret_cast<T*>(columns_.back().memory.data());
}

ops::RowMemory RowStore::add_numbers(std::string name, DType dtype, int64_t elements_per_row) {
  const std::string_view type = name_of(dtype);
  if (size_of(dtype) == 2) return {add_column<uint16_t>(std::move(name), type, true, elements_per_row, true), dtype};
  return {add_column<float>(std::move(name), type, true, elements_per_row, true), dtype};
}

int RowStore::row_bits() const {
  constexpr int kOfAPass = 8;  // of the sort
  const int most = std::bit_width(static_cast<uint64_t>(most_rows()));
  if (!sorts_bits_in_use_) return most;
  const int in_use = std::bit_width(static_cast<uint64_t>(capacity_));
  return std::min(most, (in_use + kOfAPass - 1) / kOfAPass * kOfAPass);
}

void RowStore::sort_bits_in_use() {
  if (on_disk_) return;  // memory grows when the work of the step is recorded already
  sorts_bits_in_use_ = true;
  recorded_bits_ = row_bits();
}

bool RowStore::consume_rerecord_flag() {
  const int bits = row_bits();
  return sorts_bits_in_use_ && std::exchange(recorded_bits_, bits) != bits;
}

RowStore::Progress RowStore::progress() const {
  const uint64_t word = std::atomic_ref<uint64_t>(*host_word()).load(std::memory_order_acquire);
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

RowStore::Progress RowStore::wait_for_all() {
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  const Progress now = progress();
  batches_ = now.batches;  // nothing is queued
  return now;
}

ops::IndexState RowStore::state() {
  wait_for_all();
  ops::IndexState state;
  copy_bytes(runtime_.compute_stream(), &state, state_.data(), sizeof state);
  runtime_.compute_stream().synchronize();
  return state;
}

int64_t RowStore::finished_rows() {
  const ops::IndexState now = state();
  drop_refused_rows();
  return static_cast<int64_t>(now.finished) - shared_rows() - free_.count();
}

void RowStore::set_rows(const ops::IndexState& now) {
  copy_bytes(runtime_.compute_stream(), state_.data(), &now, sizeof now);
  runtime_.compute_stream().synchronize();
  tell_host({now.batches, now.rows});
}

void RowStore::tell_host(const Progress& now) {
  std::atomic_ref<uint64_t>(*host_word())
      .store(static_cast<uint64_t>(now.batches) << 32 | now.rows, std::memory_order_release);
}

}  // namespace hctr
