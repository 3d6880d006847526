// Rows and files of an EmbeddingSet, between batches.
#include "engine/set/set_batches.h"
#include "engine/set/set_state.h"
#include "hctr/embedding.h"

namespace hctr {

int64_t EmbeddingSet::updates() {
  const CurrentDevice keep(state_->runtime.device());
  return state_->read_step().updates;
}

void EmbeddingSet::set_updates(int64_t updates) {
  const CurrentDevice keep(state_->runtime.device());
  if (updates < 0) refuse_call(cat(updates, " updates"));
  StepState state = state_->read_step();
  state.updates = updates;
  state_->write_step(state);
}

int64_t EmbeddingSet::rows(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  return state_->idle_table(table).rows();
}

EmbeddingMemory EmbeddingSet::memory(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  EmbeddingTable& of = state_->idle_table(table);
  const RowStore::HostRows on_host = of.host_rows();
  const RowStore::DeviceBytes on_device = of.device_bytes();
  return {of.rows(), on_host.rows, of.disk_use().rows, on_device.numbers + on_device.besides, on_host.bytes};
}

std::map<std::string, int64_t> EmbeddingSet::counts(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  return state_->idle_table(table).counts();
}

namespace {

void pass_rows(EmbeddingTable& table, RowsToExport wanted, const std::function<void(const TableRows&)>& sink) {
  table.export_rows(wanted, [&](const RowBlock& block) {
    TableRows rows{block.keys, block.vectors, {}};
    for (int s = 0; wanted.states && s < table.spec().optimizer.states(); ++s) rows.states.push_back(block.states[s]);
    sink(rows);
  });
}

}  // namespace

void EmbeddingSet::export_rows(const std::string& table, bool states,
                               const std::function<void(const TableRows&)>& sink) {
  const CurrentDevice keep(state_->runtime.device());
  pass_rows(state_->idle_table(table), RowsToExport(states), sink);
}

void EmbeddingSet::export_changed_rows(const std::string& table, bool states,
                                       const std::function<void(const TableRows&)>& sink) {
  const CurrentDevice keep(state_->runtime.device());
  EmbeddingTable& of = state_->idle_table(table);
  if (!of.spec().marks_changes) refuse_call(cat("table '", table, "' marks no changes: set marks_changes"));
  pass_rows(of, RowsToExport(states, true), sink);
}

std::vector<int64_t> EmbeddingSet::removed_keys(const std::string& table) {
  const CurrentDevice keep(state_->runtime.device());
  std::vector<int64_t> keys;
  for (const SlotKey& one : state_->idle_table(table).removed_keys()) keys.push_back(one.second);
  return keys;
}

void EmbeddingSet::note_exported() {
  const CurrentDevice keep(state_->runtime.device());
  for (const EmbeddingTableOptions& table : state_->options.tables)
    if (table.marks_changes) state_->idle_table(table.name).note_model();
}

void EmbeddingSet::import_rows(const std::string& table, const TableRows& rows) {
  const CurrentDevice keep(state_->runtime.device());
  EmbeddingTable& of = state_->idle_table(table);
  const auto count = static_cast<int64_t>(rows.keys.size());
  const auto expect = [&](const char* what, size_t have, int64_t dim) {
    if (have != 0 && static_cast<int64_t>(have) != count * dim)
      refuse_call(
          cat("table '", table, "': ", count, " keys with ", have, " elements of ", what, ", ", dim, " for each"));
  };
  expect("vectors", rows.vectors.size(), of.spec().dim);
  if (rows.states.size() > static_cast<size_t>(of.spec().optimizer.states()))
    refuse_call(cat("table '", table, "' has ", of.spec().optimizer.states(), " states, and ", rows.states.size(),
                    " are given"));
  RowBlock block{rows.keys, {}, rows.vectors, {}, {}};
  for (size_t s = 0; s < rows.states.size(); ++s) {
    expect("a state", rows.states[s].size(), of.spec().state_dim());
    block.states[s] = rows.states[s];
  }
  of.import_rows(block);
}

void EmbeddingSet::save(const std::filesystem::path& folder) {
  const CurrentDevice keep(state_->runtime.device());
  std::vector<EmbeddingTable*> tables;
  for (const EmbeddingTableOptions& table : state_->options.tables) tables.push_back(&state_->idle_table(table.name));
  save_set(folder, state_->options, state_->runtime, tables, {state_->read_step().updates, state_->host_step});
}

void EmbeddingSet::load(const std::filesystem::path& folder) {
  const CurrentDevice keep(state_->runtime.device());
  if (state_->last_batch != 0) refuse_call("load() of an embedding set that has had a batch: load into a new one");
  std::vector<EmbeddingTable*> tables;
  for (const EmbeddingTableOptions& table : state_->options.tables) tables.push_back(&state_->idle_table(table.name));
  const SetProgress progress = load_set(folder, state_->options, state_->runtime, tables);
  state_->host_step = progress.steps;
  set_updates(progress.updates);
}

}  // namespace hctr
