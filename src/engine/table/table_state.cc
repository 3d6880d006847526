// Saves and loads a table in checkpoints.
#include "engine/table/row_store_state.h"
#include "engine/table/table.h"

namespace hctr {

template <class State>
void EmbeddingTable::visit_numbers(State& state) {
  state.number("evicted", evicted_);
  state.number("expired", expired_);
  state.number("steps_before", steps_before_);
  state.number("counted_steps", counted_steps_);
}

void EmbeddingTable::save_state(StateWriter to) {
  HCTR_EXPECT(!stats_continued_, "table '", spec_.name, "' cannot be saved before its first step");
  visit_numbers(to);
  // Describe the row layout, so that runs with another placement can read the rows.
  to.number("pieces", spec_.pieces);
  to.number("by_slot", spec_.identity_by_slot);
  std::vector<int64_t> spans;
  for (const ops::KeySpan& span : spec_.direct.spans)
    spans.insert(spans.end(), {span.first, span.count, span.base, span.step});
  if (!spans.empty()) to.list("spans", spans);
  save_rows(store_, to);
  if (admission_) admission_->save_state(to.in("admission"));
}

void EmbeddingTable::load_state(const StateReader& from) {
  visit_numbers(from);
  load_rows(store_, from);
  if (admission_) admission_->load_state(from.in("admission"));
  set_steps_before();
}

void EmbeddingTable::load_state_by_key(const std::vector<StateReader>& of_ranks, int rank, const Owns& owns) {
  visit_numbers(of_ranks.at(0));
  if (rank != 0) evicted_ = expired_ = 0;  // rank 0 stores the sums over all ranks
  for (size_t r = 1; r < of_ranks.size() && rank == 0; ++r) {
    evicted_ += of_ranks[r].number("evicted");
    expired_ += of_ranks[r].number("expired");
  }
  set_steps_before();
  if (!admission_) return;
  std::vector<StateReader> admissions;
  for (const StateReader& table : of_ranks) admissions.push_back(table.in("admission"));
  // Each saved rank has its own shared row, which only the keys of that rank used.
  if (const StateReader& table = of_ranks[static_cast<size_t>(rank) % of_ranks.size()];
      spec_.policy.shares_row() && table.number("first_row") > 1)
    load_shared_row(store_, table);
  admission_->load_state_by_key(admissions, rank, owns, rows() >= spec_.row_limit);
}

}  // namespace hctr
