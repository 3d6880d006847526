// Row limit and expiry of a table: host code between steps.
#include <utility>

#include "core/device/copy_bytes.h"
#include "engine/table/remove_rows.h"
#include "engine/table/table.h"

namespace hctr {

void EmbeddingTable::continue_access_stats(int64_t steps) {
  counted_steps_ = steps;
  stats_continued_ = true;
}

void EmbeddingTable::set_steps_before() {
  store_.set_steps_before(steps_before_);
  if (admission_) admission_->set_steps_before(steps_before_);
}

void EmbeddingTable::reserve_rows(int64_t step) {
  if (std::exchange(stats_continued_, false)) {
    steps_before_ = counted_steps_ - step;
    set_steps_before();
  }
  step += steps_before_;
  counted_steps_ = step + 1;
  if (const int64_t since = store_.policy().expired_before(step); since > 0) {
    expired_ += expire_rows(store_, since);
    if (admission_ && admission_->closed() && store_.policy().reopens(rows())) admission_->close(false);
  }
  if (admission_) admission_->reserve_rows(step);
  store_.reserve_rows();
  if (RowDiskTier* const disk = store_.tiers().disk()) disk->begin_step(static_cast<uint32_t>(step));
}

bool EmbeddingTable::reserve_memory() {
  const bool of_candidates = admission_ && admission_->reserve_memory();
  return store_.reserve_memory() || of_candidates;
}

void EmbeddingTable::confirm_capacity(int buffer) const {
  if (not_brought_) throw *not_brought_;
  if (admission_ && admission_->closed()) return;  // while closed, no new key gets a row, so the limit holds
  store_.confirm_capacity();
  if (!spec_.policy.evicts() || !store_.over_limit()) return;
  int32_t runs = 0;
  const Batch& batch = batches_.at(static_cast<size_t>(buffer));
  copy_bytes(runtime_.prepare_stream(), &runs, &batch.groups.counts->runs, sizeof runs);
  runtime_.prepare_stream().synchronize();
  store_.policy().check_batch(runs);
}

void EmbeddingTable::enforce_limit(int buffer) {
  if (RowDiskTier* const disk = store_.tiers().disk()) disk->keep_new_rows();
  evict_or_refuse(buffer);
  const Batch& batch = prepared(buffer);
  store_.tiers().count_batch(batch.groups, batch.keys.key_capacity);
}

void EmbeddingTable::evict_or_refuse(int buffer) {
  if ((admission_ && admission_->closed()) || !store_.over_limit()) return;
  const Batch& batch = prepared(buffer);
  if (spec_.policy.shares_row()) {
    refuse_newest_rows(store_, {batch.rows, batch.keys.key_capacity, 1, admission_->on_shared_row()});
    admission_->close(true);
  } else {
    evicted_ += evict_rows(store_, {batch.rows, batch.keys.key_capacity});
  }
  Context ctx(runtime_, runtime_.compute_stream());
  ops::group_by_row(ctx, batch.keys, batch.rows, store_.rows().bits().now(), batch.groups, scratch_->group);
  copy_bytes(ctx.stream(), batch.rows_after, &hash_index().state->ready, sizeof(uint32_t));
  ctx.stream().synchronize();
}

std::map<std::string, int64_t> EmbeddingTable::counts() {
  const RowPolicy& policy = spec_.policy;
  std::map<std::string, int64_t> counts;
  if (!policy.any()) return counts;
  counts["rows"] = rows();
  if (policy.evicts()) counts["rows_evicted"] = evicted_;
  if (policy.expire_after > 0) counts["rows_expired"] = expired_;
  if (!admission_) return counts;
  const Admission::Counts at_the_gate = admission_->counts();
  if (policy.shares_row()) counts["occurrences_ignored"] = at_the_gate.on_shared_row;
  if (policy.min_count > 1 || policy.admit_probability < 1)
    counts["occurrences_not_admitted"] = at_the_gate.without_row;
  if (policy.min_count > 1) counts["candidates_dropped"] = at_the_gate.candidates_dropped;
  return counts;
}

}  // namespace hctr
