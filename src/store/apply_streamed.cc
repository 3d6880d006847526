// Applies deltas of a stream as changes to the tables of a store.
#include <unordered_set>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
#include "hctr/delta_stream.h"
#include "store/store_state.h"

namespace hctr {
namespace {

ChangesOfTable changes_of_streamed(const StreamedAbout::Table& about, const StreamedDelta::Rows& from) {
  ChangesOfTable changes;
  const auto dim = static_cast<size_t>(about.dim);
  if (!about.by_slot) {
    if (from.keys.empty() && from.removed.empty()) return changes;
    changes[0] = {.keys = from.keys, .removed = from.removed, .rows = from.rows};
    return changes;
  }
  for (size_t i = 0; i < from.keys.size(); ++i) {
    ChangedRows& to = changes[from.slots[i]];
    to.keys.push_back(from.keys[i]);
    const auto row = from.rows.begin() + static_cast<int64_t>(i * dim);
    to.rows.insert(to.rows.end(), row, row + about.dim);
  }
  for (size_t i = 0; i < from.removed.size(); ++i) changes[from.removed_slots[i]].removed.push_back(from.removed[i]);
  return changes;
}

/// Finds the keys that the table has and the streamed full model lacks. Adds them to `changes` as removed keys.
void remove_others(const StoreTable& table, ChangesOfTable& changes) {
  std::map<int32_t, std::unordered_set<int64_t>> stays;
  for (const auto& [slot, change] : changes) stays[slot].insert(change.keys.begin(), change.keys.end());
  std::map<int32_t, std::vector<int64_t>> gone;
  table.each([&](int32_t slot, std::span<const int64_t> keys, std::span<const float>) {
    for (const int64_t key : keys)
      if (!stays[slot].contains(key)) gone[slot].push_back(key);
  });
  for (auto& [slot, keys] : gone) changes[slot].removed = std::move(keys);
}

}  // namespace

std::vector<ChangesOfTable> changes_by_call(const StoreView& view, std::span<const StoreTableUpdate> updates) {
  const std::vector<StoreView::Table> tables = view.tables();
  std::vector<ChangesOfTable> changes(tables.size());
  for (const StoreTableUpdate& update : updates) {
    const size_t t = view.table(update.table);
    ChangedRows& to = changes[t][update.slot];
    to.keys.insert(to.keys.end(), update.keys.begin(), update.keys.end());
    to.removed.insert(to.removed.end(), update.removed.begin(), update.removed.end());
    to.rows.insert(to.rows.end(), update.rows, update.rows + update.keys.size() * static_cast<size_t>(tables[t].dim));
  }
  return changes;
}

bool Store::apply(std::string_view model, const StreamedDelta& delta, std::string_view position) {
  const std::lock_guard lock(state_->updating);
  return in_context(
      [&] { return cat("applying the delta of iteration ", delta.about.iteration, " to model '", model, "'"); },
      [&] {
        const State::VersionPointer of_model = state_->active(model);
        const StoreView view(of_model);
        const StoreView::Version& version = *of_model;
        if (!version.run.empty() && delta.about.run != version.run)
          throw Error(Kind::data, cat("the delta belongs to run ", delta.about.run, ", but version '", version.name,
                                      "' to run ", version.run));
        const int64_t iteration = version.progress->iteration;
        if (delta.about.iteration <= iteration) return false;
        const bool whole = delta.about.base < 0;
        if (!whole && iteration >= 0 && delta.about.base != iteration)
          throw Error(Kind::data, cat("the delta has the changes since iteration ", delta.about.base, ", but version '",
                                      version.name, "' has iteration ", iteration, ": deltas in between are missing"));
        const auto& tables = version.tables();
        std::vector<ChangesOfTable> changes(tables.size());
        std::vector<int64_t> rows(tables.size(), -1);
        for (size_t t = 0; t < delta.about.tables.size(); ++t) {
          const StreamedAbout::Table& of = delta.about.tables[t];
          const size_t at = view.table(of.name);
          const StoreTable::About about = tables[at]->about();
          if (of.dim != about.dim || of.by_slot != about.by_slot)
            throw Error(Kind::data, cat("table '", of.name, "' has rows of ", of.dim, " elements by ",
                                        of.by_slot ? "slot and key" : "key", ", but the store has rows of ", about.dim,
                                        " elements by ", about.by_slot ? "slot and key" : "key"));
          changes[at] = changes_of_streamed(of, delta.tables[t]);
          if (whole) remove_others(*tables[at], changes[at]);
          rows[at] = of.rows;
        }
        const State::Streamed streamed{std::string(position), delta.about.run};
        return state_->apply(of_model, delta.about.iteration, std::move(changes), rows, delta.about.written, &streamed);
      });
}

void Store::apply(std::string_view model, std::span<const StoreTableUpdate> updates, std::string_view position) {
  const std::lock_guard lock(state_->updating);
  const State::VersionPointer version = state_->active(model);
  std::vector<ChangesOfTable> changes = changes_by_call(StoreView(version), updates);
  const std::vector<int64_t> rows_after(changes.size(), -1);
  const State::Streamed streamed{std::string(position)};
  state_->apply(version, State::kNoIteration, std::move(changes), rows_after, unix_time(), &streamed);
}

std::string Store::position(std::string_view model) const {
  const std::lock_guard lock(state_->changing);
  return state_->active(model)->progress->position;
}

std::string Store::run(std::string_view model) const {
  const std::lock_guard lock(state_->changing);
  return state_->active(model)->run;
}

}  // namespace hctr
