// Applies updates to versions.
#include <algorithm>
#include <utility>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/thread_pool.h"
#include "store/store_state.h"

namespace hctr {
namespace {

constexpr size_t kRowsOfUpdate = 1024;  // rows that are changed between two checks of the rate limit
constexpr size_t kFewestForThreads = 16384;
constexpr int kCoresOfThread = 4;  // an update has one thread per 4 cores; look-ups use the other cores

}  // namespace

void notify_listeners(const StoreView::Version& version, const std::vector<ChangesOfTable>& changes, uint64_t number) {
  for (const auto& one : version.listeners)
    if (const auto listener = one.lock()) (*listener)(changes, number);
}

void count_changes(StoreView::Version::Progress& progress, const std::vector<ChangesOfTable>& changes) {
  for (const ChangesOfTable& table : changes)
    for (const auto& [slot, change] : table) {
      progress.updated_rows += static_cast<int64_t>(change.keys.size());
      progress.removed_rows += static_cast<int64_t>(change.removed.size());
    }
  progress.updates += 1;
}

/// The tables that an update changes, from its begin to its end. Meanwhile, commits of other updates exclude the
/// changes of these tables and describe the version as before the update, and look-ups copy no rows of these tables to
/// upper levels.
class Store::State::Update {
 public:
  Update(const std::vector<StoreLevel*>& levels, const Version& version) : levels_(levels), version_(version) {
    version_.noted = std::make_shared<const Json>(note_of(version));
  }
  ~Update() {
    release();
    for (StoreTable* const table : tables_) table->end_update();
  }
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;

  void begin(StoreTable& table, const ChangesOfTable& changes) {
    for (const auto& [slot, change] : changes) table.open(slot, static_cast<int64_t>(change.keys.size()));
    for (const auto& [slot, space] : table.spaces())
      for (StoreLevel* const level : levels_) {
        level->hold(space);
        held_.push_back(space);
      }
    table.begin_update();
    tables_.push_back(&table);
  }
  /// Call before the commit of the changes.
  void release() {
    for (const std::string& space : std::exchange(held_, {}))
      for (StoreLevel* const level : levels_) level->release(space);
    version_.noted = nullptr;
  }

 private:
  const std::vector<StoreLevel*>& levels_;
  const Version& version_;
  std::vector<std::string> held_;
  std::vector<StoreTable*> tables_;
};

bool Store::State::is_shared(const Version& by, const std::shared_ptr<StoreTable>& table) const {
  for (const auto& [version, active] : all())
    if (version->name != by.name || version->model != by.model)
      if (std::ranges::find(version->tables(), table) != version->tables().end()) return true;
  return false;
}

std::shared_ptr<StoreTable> Store::State::copy_of(const StoreTable& table) {
  StoreTable::About about = table.about();
  about.space = cat(about.space.substr(0, about.space.rfind('/') + 1), next_space_++);
  about.content.clear();
  const std::shared_ptr<StoreTable> copy = make_table(about);
  for (const auto& [slot, name] : table.spaces()) copy->open(slot, table.rows(slot));
  ThreadPool alone(1);
  table.each([&](int32_t slot, std::span<const int64_t> keys, std::span<const float> rows) {
    for (size_t l = 0; l < levels.size(); ++l) copy->fill(l, slot, keys, rows.data(), alone);
  });
  return copy;
}

/// Detects errors of an update before any change. `changes`: each key once. `rows_after`: negative if unknown.
void Store::State::check_change(const StoreTable& table, const ChangesOfTable& changes, int64_t rows_after) const {
  for (const auto& [slot, change] : changes)
    if (slot != 0 && !table.about().by_slot)
      throw Error(Kind::data, cat("an update names slot ", slot, " of table '", table.about().name,
                                  "', but rows of this table are identified by key alone"));
  if (rows_after < 0) return;
  int64_t rows = table.rows();
  for (const auto& [slot, change] : changes)
    rows += std::ssize(change.keys) - table.count(slot, change.keys) - table.count(slot, change.removed);
  if (rows != rows_after)
    throw Error(Kind::data, cat("table '", table.about().name, "' has ", rows,
                                " rows after the update, but the "
                                "update states ",
                                rows_after, ": the update builds on another model"));
}

void Store::State::change(StoreTable& table, size_t level, const ChangesOfTable& changes,
                          std::unique_lock<std::mutex>& of_changing) {
  const bool frees = levels.back()->holds();
  for (const auto& [slot, change] : changes) {
    ThreadPool threads(change.keys.size() < kFewestForThreads ? 1 : std::max(1, usable_cores() / kCoresOfThread));
    const size_t rows_at_once = rate_.limits() ? kRowsOfUpdate : change.keys.size();
    for (size_t first = 0; first < change.removed.size(); first += kRowsOfUpdate) {
      const size_t count = std::min(kRowsOfUpdate, change.removed.size() - first);
      rate_.wait_for(static_cast<int64_t>(count), of_changing, frees);
      table.remove(level, slot, std::span(change.removed).subspan(first, count));
    }
    for (size_t first = 0; first < change.keys.size(); first += rows_at_once) {
      const size_t count = std::min(rows_at_once, change.keys.size() - first);
      rate_.wait_for(static_cast<int64_t>(count), of_changing, frees);
      table.put(level, slot, std::span(change.keys).subspan(first, count),
                change.rows.data() + first * static_cast<size_t>(table.dim()), threads);
    }
  }
}

/// The distinct rows of an update. Detects errors of the update before any change.
std::shared_ptr<Store::State::Version::Pending> Store::State::pending_of(const Version::Content& before,
                                                                         std::vector<ChangesOfTable> changes,
                                                                         const std::vector<int64_t>& rows_after) const {
  const auto pending = std::make_shared<Version::Pending>();
  pending->changes = std::move(changes);
  for (size_t t = 0; t < before.tables.size(); ++t) {
    ChangesOfTable& of_table = pending->changes[t];
    const int64_t dim = before.tables[t]->dim();
    PendingRows rows(of_table, dim);
    if (rows.has_duplicates()) {
      rows.remove_duplicates_from(of_table);
      rows = PendingRows(of_table, dim);
    }
    check_change(*before.tables[t], of_table, rows_after[t]);
    pending->rows.push_back(std::move(rows));
  }
  return pending;
}

void Store::State::wait_for_look_ups(const Version& version, std::unique_lock<std::mutex>& of_changing) {
  const bool frees = levels.back()->holds();
  if (frees) of_changing.unlock();
  version.content.wait();
  if (frees) of_changing.lock();
}

/// Changes the lowest level first, so that upper levels never show rows that the lowest level lacks. Until every level
/// has the update's rows, look-ups read these rows from memory (Content::pending). They do so from just before the
/// commit if the lowest level changes at commits, otherwise from before the rows of the lowest level change. The update
/// waits for the look-ups that began before it, because they read the levels without `pending`. Look-ups that begin
/// during the update may outlast it: the next update waits for them.
bool Store::State::apply(const VersionPointer& version, int64_t iteration, std::vector<ChangesOfTable> changes,
                         const std::vector<int64_t>& rows_after, double written, const Streamed* streamed) {
  using Content = Version::Content;
  version->content.wait();
  std::unique_lock lock(changing);
  check_writable("an update");
  const Content before = version->content.get();
  Version::Progress& progress = *version->progress;
  if (iteration == kNoIteration)
    iteration = progress.iteration;
  else if (iteration <= progress.iteration)
    return false;
  if (before.pending)
    throw Error(Kind::data, cat("version '", version->name, "' of model '", version->model,
                                "' lacks a part of its last update, which ran out of memory: load the version again"));
  const std::shared_ptr<Version::Pending> pending = pending_of(before, std::move(changes), rows_after);

  // A table that other versions share is copied first, so that those versions keep the old rows.
  Content after{.tables = before.tables, .pending = pending, .iteration = iteration, .number = before.number + 1};
  std::vector<std::shared_ptr<StoreTable>> copies;
  const auto change_all = [&](size_t level) {
    for (size_t t = 0; t < after.tables.size(); ++t) change(*after.tables[t], level, pending->changes[t], lock);
  };
  size_t level = levels.size() - 1;
  Update update(levels, *version);
  const std::string run_before = version->run, position_before = progress.position;
  const auto show = [&](const Content& content) {
    version->content.set(content);
    progress.iteration = content.iteration;
  };
  try {
    for (size_t t = 0; t < after.tables.size(); ++t) {
      if (pending->changes[t].empty()) continue;
      if (is_shared(*version, after.tables[t])) copies.push_back(after.tables[t] = copy_of(*after.tables[t]));
      update.begin(*after.tables[t], pending->changes[t]);
    }
    const bool at_commit = levels[level]->changes_at_commit();
    if (at_commit) change_all(level);
    // RocksDB and shared memory show the rows of a new table only when the table is complete. rows() completes the
    // table.
    if (at_commit)
      for (const std::shared_ptr<StoreTable>& copy : copies) (void)copy->rows();
    show(after);
    wait_for_look_ups(*version, lock);
    // Levels that change at commits may still roll back, so listeners are notified later.
    if (!at_commit) notify_listeners(*version, pending->changes, after.number);
    if (!at_commit) change_all(level);
    if (streamed) {  // the commit below stores these data
      if (version->run.empty()) version->run = streamed->run;
      progress.position = streamed->position;
    }
    update.release();
    commit();
    if (at_commit) notify_listeners(*version, pending->changes, after.number);
  } catch (...) {
    version->run = run_before;
    progress.position = position_before;
    // A level that cannot roll back may already have some of the update's rows. Look-ups then still read all rows of
    // the update from `pending`. In every other case, look-ups return to the old content, because they must not read
    // `copies` during the rollback.
    if (levels[level]->changes_at_commit() || !version->content.get().pending) show(before);
    levels[level]->roll_back();
    version->content.wait();
    for (const std::shared_ptr<StoreTable>& copy : copies)
      if (!version->content.get().pending) copy->drop();
    throw;
  }
  while (level-- > 0) change_all(level);
  show({.tables = after.tables, .pending = nullptr, .iteration = iteration, .number = after.number});

  count_changes(progress, pending->changes);
  if (written >= 0) progress.newest = written;
  lock.unlock();
  // Look-ups that run for longer than this destroy the rows of the update themselves.
  constexpr std::chrono::milliseconds kMostWait{10};
  version->content.wait_for(kMostWait);
  return true;
}

}  // namespace hctr
