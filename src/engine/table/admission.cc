#include "engine/table/admission.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/device/copy_bytes.h"
#include "engine/spec/derived_specs.h"
#include "engine/table/remove_rows.h"

namespace hctr {
Admission::Admission(Runtime& runtime, const TableSpec& spec, int batches_ahead)
    : runtime_(runtime),
      policy_(spec.policy),
      by_slot_(spec.identity_by_slot),
      device_gate_(runtime.device(), sizeof(ops::GateState)),
      all_rows_(runtime.device(), sizeof(ops::IndexState)) {
  if (policy_.min_count > 1) {
    candidates_ = std::make_unique<RowStore>(runtime, candidate_spec(spec), std::max<int64_t>(spec.key_capacity, 1),
                                             batches_ahead);
    rule_.occurrences = candidates_->rows().arrays().access_stats().occurrences;
    rule_.min_count = static_cast<uint32_t>(policy_.min_count);
  }
  rule_.random_key = random_key(runtime.options().seed, random_stream("admission:" + spec.name));
  rule_.threshold = ops::AdmissionRule::threshold_of(policy_.admit_probability);
  rule_.order = {spec.batch, spec.rank, spec.ranks};
  allocate(spec, std::max<int64_t>(spec.key_capacity, 1));
}

void Admission::reserve_batch(const TableSpec& spec, int64_t keys) {
  Arena before = std::exchange(arena_, {});
  if (keeps_) replaced_.push_back(std::move(before));
  before = {};
  keys_ = 0;
  allocate(spec, keys);
  if (candidates_) candidates_->rows().batches().grow(keys);
}

void Admission::allocate(const TableSpec& spec, int64_t keys) {
  const auto words = [&](int64_t count) { return arena_.add(TensorSpec(DType::i32, {count})); };
  const auto bytes = [&](size_t count) { return words(static_cast<int64_t>(count / sizeof(int32_t)) + 1); };
  const auto selection = [&] { return std::array{words(2 * keys), words(keys), words(spec.slots_of_batch() + 1)}; };
  const auto unknown = selection(), admitted = selection();
  const size_t wanted = bytes(static_cast<size_t>(keys)), candidates = words(keys), found = words(keys),
               after = words(1), scratch = bytes(ops::select_keys_bytes(runtime_.device(), keys));
  arena_.build(runtime_.device());
  const auto at = [&]<class T>(size_t ticket, T*& pointer) {
    pointer = reinterpret_cast<T*>(arena_.get(ticket).bytes());
  };
  for (const auto& [tickets, to] : {std::pair(unknown, &unknown_), std::pair(admitted, &admitted_)}) {
    at(tickets[0], to->keys);
    at(tickets[1], to->positions);
    at(tickets[2], to->offsets);
  }
  at(wanted, wanted_);
  at(candidates, candidate_rows_);
  at(found, found_);
  at(after, candidates_after_);
  at(scratch, scratch_);
  keys_ = keys;
}

void Admission::set_steps_before(int64_t steps) {
  if (candidates_) candidates_->set_steps_before(steps);
}

void Admission::reserve_rows(int64_t step) {
  if (!candidates_) return;
  if (const int64_t since = candidates_->policy().expired_before(step); since > 0)
    candidates_dropped_ += expire_rows(*candidates_, since);
  candidates_dropped_ += trim_rows(*candidates_);
  candidates_->reserve_rows();
}

bool Admission::reserve_memory() { return candidates_ && candidates_->reserve_memory(); }

void Admission::find_or_admit(Context& ctx, const ops::HashIndex& table, ops::KeyBatch batch, int32_t* rows) {
  ops::HashIndex all = table;
  all.state = reinterpret_cast<ops::IndexState*>(all_rows_.data());
  ops::see_all_rows(ctx, table, all.state);
  ops::index_find(ctx, all, batch, rows);

  const ops::KeyBatch unknown = unknown_.batch(batch), admitted = admitted_.batch(batch);
  ops::mark_unknown(ctx, batch, rows, wanted_);
  ops::select_keys(ctx, batch, wanted_, unknown_, scratch_);
  if (candidates_) {
    ops::index_insert(ctx, candidates_->rows().index().view(), unknown, candidate_rows_);
    ops::record_access_by_key(ctx, unknown, candidate_rows_, candidates_->rows().arrays().access_stats());
    ops::index_close_batch(ctx, candidates_->rows().index().view(), candidates_after_,
                           candidates_->rows().index().host_word());
  }
  ops::admit_keys(ctx, batch, unknown_, candidate_rows_, rule_, device_gate(), wanted_);
  if (candidates_)
    ops::forget_admitted(ctx, unknown, candidate_rows_, wanted_,
                         candidates_->rows().arrays().access_stats().occurrences);
  ops::select_keys(ctx, unknown, wanted_, admitted_, scratch_);
  ops::index_insert(ctx, table, admitted, found_);

  // All occurrences of an admitted key use its row, even those for which the random draw did not admit the key.
  ops::see_all_rows(ctx, table, all.state);
  ops::index_find(ctx, all, unknown, found_);
  ops::hand_out_rows(ctx, unknown, unknown_.positions, found_, device_gate(), rows);
}

void Admission::share_row(Context& ctx, ops::KeyBatch batch, int32_t* rows) const {
  ops::share_row(ctx, batch, device_gate(), rows);
}

void Admission::close(bool closed) {
  gate_.closed = closed;
  if (closed) gate_.shared_row = 1;
  copy_bytes(runtime_.compute_stream(), device_gate(), &gate_, offsetof(ops::GateState, on_shared_row));
  runtime_.compute_stream().synchronize();
}

ops::GateState Admission::read_gate() {
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  ops::GateState now;
  copy_bytes(runtime_.compute_stream(), &now, device_gate(), sizeof now);
  runtime_.compute_stream().synchronize();
  return now;
}

Admission::Counts Admission::counts() {
  const ops::GateState now = read_gate();
  return {static_cast<int64_t>(now.on_shared_row), static_cast<int64_t>(now.without_row), candidates_dropped_};
}

}  // namespace hctr
