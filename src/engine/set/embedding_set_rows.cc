// Access to the rows and files of an EmbeddingSet between batches.
#include "engine/set/set_batches.h"
#include "engine/set/set_state.h"
#include "hctr/embedding.h"

namespace hctr {

int64_t EmbeddingSet::updates() {
  const State::Call call(*state_);
  return state_->read_step().updates;
}

void EmbeddingSet::set_updates(int64_t updates) {
  const State::Call call(*state_);
  if (updates < 0) refuse_call(cat(updates, " updates"));
  StepState state = state_->read_step();
  state.updates = updates;
  state_->write_step(state);
}

int64_t EmbeddingSet::rows(const std::string& table) {
  const State::Call call(*state_);
  if (!state_->shared) return state_->idle_table(table).rows();
  const size_t t = state_->agreed_number(table);
  return state_->shared->together([&] { return state_->shared->rows(t); });
}

EmbeddingMemory EmbeddingSet::memory(const std::string& table) {
  const State::Call call(*state_);
  if (state_->shared) {
    const size_t t = state_->agreed_number(table);
    return state_->shared->together([&] { return state_->shared->memory(t); });
  }
  EmbeddingTable& of = state_->idle_table(table);
  const HostRows on_host = of.host_rows();
  const DeviceBytes on_device = of.device_bytes();
  return {of.rows(), on_host.rows, of.disk_use().rows, on_device.numbers + on_device.besides, on_host.bytes};
}

std::map<std::string, int64_t> EmbeddingSet::counts(const std::string& table) {
  const State::Call call(*state_);
  if (!state_->shared) return state_->idle_table(table).counts();
  const size_t t = state_->agreed_number(table);
  return state_->shared->together([&] { return state_->shared->counts(t); });
}

namespace {

/// Returns a function that passes blocks to `sink` as the public type TableRows. `states`: number of requested states
/// per row.
std::function<void(const RowBlock&)> passing(int states, const std::function<void(const TableRows&)>& sink) {
  return [states, &sink](const RowBlock& block) {
    const AllocatorScope of_callers(nullptr);  // the sink's allocations must not use the set's allocator
    TableRows rows{block.keys, block.vectors, {}};
    for (int s = 0; s < states; ++s) rows.states.push_back(block.states[s]);
    sink(rows);
  };
}

}  // namespace

std::vector<TableOnRank> EmbeddingSet::State::saved_tables() {
  std::vector<TableOnRank> all;
  agreed([&] {
    for (size_t t = 0; t < options.tables.size(); ++t) {
      idle_number(options.tables[t].name);
      all.push_back(shared ? TableOnRank{shared->tables()[t]->table(), shared->tables()[t]->place()}
                           : TableOnRank{&tables[t]->table()});
    }
  });
  return all;
}

void EmbeddingSet::State::export_rows(const std::string& table, RowsToExport wanted,
                                      const std::function<void(const TableRows&)>& sink) {
  const Call call(*this);
  size_t t = 0;
  agreed([&] {
    t = idle_number(table);
    if (wanted.changed && !spec(t).marks_changes)
      refuse_call(cat("table '", table, "' does not record changed rows: set marks_changes"));
  });
  const auto pass = passing(wanted.states ? spec(t).optimizer.states() : 0, sink);
  if (shared)
    shared->export_rows(t, wanted, pass);
  else
    tables[t]->table().export_rows(wanted, pass);
}

void EmbeddingSet::export_rows(const std::string& table, bool states,
                               const std::function<void(const TableRows&)>& sink) {
  state_->export_rows(table, RowsToExport(states), sink);
}

void EmbeddingSet::export_changed_rows(const std::string& table, bool states,
                                       const std::function<void(const TableRows&)>& sink) {
  state_->export_rows(table, RowsToExport(states, true), sink);
}

std::vector<int64_t> EmbeddingSet::removed_keys(const std::string& table) {
  const State::Call call(*state_);
  if (state_->shared) {
    const size_t t = state_->agreed_number(table);
    return state_->shared->together([&] { return state_->shared->removed_keys(t); });
  }
  std::vector<int64_t> keys;
  for (const SlotKey& one : state_->idle_table(table).removed_keys()) keys.push_back(one.second);
  return keys;
}

void EmbeddingSet::note_exported() {
  const State::Call call(*state_);
  for (const EmbeddingTableOptions& table : state_->options.tables) {
    if (!table.marks_changes) continue;
    if (state_->shared)
      state_->shared->note_model(state_->idle_number(table.name));
    else
      state_->idle_table(table.name).note_model();
  }
}

namespace {

/// Converts TableRows to a RowBlock. Errors: Error(usage) if the lists do not match the table or one another.
RowBlock block_of(const TableSpec& spec, const TableRows& rows) {
  const auto count = static_cast<int64_t>(rows.keys.size());
  const auto expect = [&](const char* what, size_t have, int64_t dim) {
    if (have != 0 && static_cast<int64_t>(have) != count * dim)
      refuse_call(cat("table '", spec.name, "': ", count, " keys have ", have, " elements of ", what, ", expected ",
                      dim, " for each key"));
  };
  expect("vectors", rows.vectors.size(), spec.dim);
  if (rows.states.size() > static_cast<size_t>(spec.optimizer.states()))
    refuse_call(cat("table '", spec.name, "' has ", spec.optimizer.states(), " states, but ", rows.states.size(),
                    " were passed"));
  RowBlock block{rows.keys, {}, rows.vectors, {}, {}};
  for (size_t s = 0; s < rows.states.size(); ++s) {
    expect("a state", rows.states[s].size(), spec.state_dim());
    block.states[s] = rows.states[s];
  }
  return block;
}

}  // namespace

void EmbeddingSet::import_rows(const std::string& table, const TableRows& rows) {
  const State::Call call(*state_);
  const auto import = [&] {
    const size_t t = state_->idle_number(table);
    const RowBlock block = block_of(state_->spec(t), rows);
    if (state_->shared)
      state_->shared->import_rows(t, block);
    else
      state_->tables[t]->table().import_rows(block);
  };
  state_->on_several() ? agree_without_limit(*state_->comms.host, import) : import();
}

int64_t EmbeddingSet::remove_rows(const std::string& table, std::span<const int64_t> keys) {
  const State::Call call(*state_);
  const size_t t = state_->agreed_number(table);
  if (state_->shared) return state_->shared->together([&] { return state_->shared->remove_rows(t, keys); });
  ++state_->removals;
  return state_->tables[t]->table().remove_rows(keys);
}

void EmbeddingSet::save(const std::filesystem::path& folder) {
  const State::Call call(*state_);
  save_set(folder, state_->options, state_->runtime, state_->saved_tables(), state_->comms.host.get(),
           {state_->read_step().updates, state_->host_step});
}

void EmbeddingSet::load(const std::filesystem::path& folder) {
  const State::Call call(*state_);
  if (state_->last_batch != 0) refuse_call("load() needs an embedding set without earlier batches: create a new set");
  const SetProgress progress =
      load_set(folder, state_->options, state_->runtime, state_->saved_tables(), state_->comms.host.get());
  state_->host_step = progress.steps;
  set_updates(progress.updates);
}

}  // namespace hctr
