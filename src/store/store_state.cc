#include "store/store_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "config/problems.h"
#include "core/base/expect.h"
#include "core/base/progress.h"
#include "core/base/thread_pool.h"
#include "hctr/formats.h"
#include "store/make_levels.h"
#include "store/slot_rows.h"

namespace hctr {
namespace {

/// The number of rows, computed from the size of the model file; 0: unknown.
int64_t expected_rows(const StoreTableSource& from) {
  if (from.random.rows > 0) return from.random.rows;
  if (from.expected > 0) return from.expected;
  std::error_code error;
  const fs::path keys = from.model_file / formats::kFolderKeys;
  const bool folder = fs::is_directory(from.model_file, error);
  const auto bytes = from.model_file.empty() ? 0 : fs::file_size(folder ? keys : from.model_file, error);
  return error ? 0 : static_cast<int64_t>(bytes) / (folder ? 8 : 8 + 4 * from.dim);
}

/// Whether another program changes rows that this store serves.
bool changes_elsewhere(const StoreOptions& options) {
  if (options.levels.empty()) return false;
  const StoreLevelOptions& lowest = options.levels.back();
  return (lowest.kind == StoreLevelOptions::Kind::rocksdb &&
          lowest.rocksdb.opening == StoreRocksOptions::Opening::follow) ||
         (lowest.kind == StoreLevelOptions::Kind::redis && lowest.redis.names == StoreNames::hugectr);
}

}  // namespace

void check_cache_options(const StoreCacheOptions& options) {
  const bool in_range = options.bytes >= 0 && options.most_rows >= 0 && options.share >= 0 && options.share <= 1;
  if (!in_range || options.admit_after < 1 || options.wait_ms < 0)
    throw Error(Kind::usage,
                "a GPU cache needs bytes, most_rows and wait_ms of at least 0, a share from 0 to 1, and admit_after of "
                "at least 1");
  if ((options.bytes > 0) + (options.most_rows > 0) + (options.share > 0) > 1)
    throw Error(Kind::usage, "set only one of bytes, most_rows and share as the size of a GPU cache");
}

Store::State::State(const StoreOptions& options) : rate_(options.update_rows_per_second) {
  check_cache_options(options.cache);
  shared->cache = options.cache;
  shared->changes_elsewhere = changes_elsewhere(options);
  owned = make_levels(options);
  for (const auto& level : owned) levels.push_back(level.get());
  read_note(levels.back()->note());
}

void Store::State::check_writable(const char* what) const {
  if (!levels.back()->writable()) throw Error(Kind::usage, cat(what, ": ", levels.back()->why_read_only()));
}

Store::State::VersionPointer Store::State::active(std::string_view model) const {
  const std::lock_guard lock(pointers_);
  const auto found = models_.find(model);
  if (found == models_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, other] : models_) names.push_back(cat("'", name, "'"));
    throw Error(Kind::usage, cat("the store has no model '", model, "'; it has ",
                                 names.empty() ? std::string("none") : one_of(names)));
  }
  return found->second.versions.find(found->second.active)->second;
}

Store::State::VersionPointer Store::State::version(std::string_view model, std::string_view name) const {
  const std::lock_guard lock(pointers_);
  const auto found = models_.find(model);
  if (found == models_.end()) return nullptr;
  const auto version = found->second.versions.find(name);
  return version == found->second.versions.end() ? nullptr : version->second;
}

std::vector<std::pair<Store::State::VersionPointer, bool>> Store::State::all() const {
  const std::lock_guard lock(pointers_);
  std::vector<std::pair<VersionPointer, bool>> versions;
  for (const auto& [name, model] : models_)
    for (const auto& [of, version] : model.versions) versions.emplace_back(version, of == model.active);
  return versions;
}

std::shared_ptr<StoreTable> Store::State::make_table(StoreTable::About about) {
  return std::make_shared<StoreTable>(std::move(about), levels);
}

void Store::State::fill(StoreTable& table, const StoreTableSource& from, const ShowProgress& show,
                        ThreadPool& threads) {
  Progress progress(show, cat("loading table '", from.name, "'"), "rows", expected_rows(from));
  int64_t rows = 0;
  if (!from.by_slot) table.open(0, expected_rows(from));
  // A table that grows copies its rows several times, so each slot begins with its final size.
  for (const auto& [slot, expected] : rows_by_slot(from, threads)) table.open(slot, expected);
  SlotRows by_slot(table.dim());
  const auto add = [&](std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> values) {
    progress.update(rows);
    rows += static_cast<int64_t>(keys.size());
    const auto put = [&](int32_t slot, std::span<const int64_t> some, const float* of) {
      table.open(slot, static_cast<int64_t>(some.size()));
      for (size_t l = 0; l < levels.size(); ++l) table.fill(l, slot, some, of, threads);
    };
    from.by_slot ? by_slot.divide(slots, keys, values, threads, put) : put(0, keys, values.data());
  };
  read_table(from, add, threads);
  const int64_t different = table.rows();  // may be slow, because a level may sort all rows in rows()
  progress.update(rows);
  progress.finish();
  if (different != rows)
    throw Error(Kind::data,
                cat("table '", from.name, "' has ", rows, " rows, but only ", different, " different keys"));
}

std::shared_ptr<StoreTable> Store::State::same_table(const Model* model, const StoreTableSource& from,
                                                     const std::string& content) const {
  if (!model || content.empty()) return nullptr;
  for (const auto& [name, version] : model->versions)
    for (const std::shared_ptr<StoreTable>& table : version->tables()) {
      const StoreTable::About about = table->about();
      if (about.name == from.name && about.content == content && about.dim == from.dim &&
          about.by_slot == from.by_slot && about.default_value == from.default_value)
        return table;
    }
  return nullptr;
}

void Store::State::load(const StoreModel& from) {
  if (from.name.empty() || from.version.empty())
    throw Error(Kind::usage, "a model in a store needs a name and a version");
  if (levels.back()->tables_are_snapshots()) check_writable("loading a version");
  if (version(from.name, from.version))
    throw Error(Kind::usage, cat("the store already has version '", from.version, "' of model '", from.name,
                                 "'; unload the existing version, or use another version name"));
  const auto next = std::make_shared<Version>(shared);
  next->model = from.name;
  next->name = from.version;
  next->run = from.run;
  next->on_miss = from.on_miss;
  next->progress->iteration = from.iteration;
  StoreView::Version::Content loaded{.tables = {}, .iteration = from.iteration};
  std::vector<std::shared_ptr<StoreTable>> made;
  std::optional<ThreadPool> threads;
  // no lock of `pointers_` is needed: this thread holds `changing`, and only its holder changes models_
  const auto found = models_.find(from.name);
  try {
    for (const StoreTableSource& source : from.tables) {
      if (source.dim < 1) throw Error(Kind::config, cat("table '", source.name, "' needs a dim of at least 1"));
      const std::string content = content_of(source);
      std::shared_ptr<StoreTable> table =
          same_table(found == models_.end() ? nullptr : &found->second, source, content);
      if (!table) {
        table = make_table({.name = source.name,
                            .dim = source.dim,
                            .by_slot = source.by_slot,
                            .default_value = source.default_value,
                            .content = content,
                            .space = cat(from.name, "/", source.name, "/", next_space_++)});
        made.push_back(table);
        if (!threads) threads.emplace(usable_cores());
        in_context([&] { return cat("loading table '", source.name, "' of model '", from.name, "'"); },
                   [&] { source.in_level ? table->adopt() : fill(*table, source, from.progress, *threads); });
      }
      for (const std::shared_ptr<StoreTable>& other : loaded.tables)
        if (other->about().name == source.name)
          throw Error(Kind::config, cat("model '", from.name, "' has two tables '", source.name, "'"));
      loaded.tables.push_back(std::move(table));
    }
  } catch (...) {
    for (const std::shared_ptr<StoreTable>& table : made) table->drop();
    throw;
  }
  next->content.replace(std::move(loaded));
  {
    const std::lock_guard lock(pointers_);
    Model& model = models_[from.name];
    model.versions[from.version] = next;
    if (model.active.empty()) model.active = from.version;
  }
  try {
    commit();
  } catch (...) {  // shared memory may be full, for example
    forget(from.name, from.version);
    for (const std::shared_ptr<StoreTable>& table : made) table->drop();
    throw;
  }
}

void Store::State::forget(const std::string& name, const std::string& version) {
  const std::lock_guard lock(pointers_);
  const auto model = models_.find(name);
  model->second.versions.erase(version);
  if (model->second.versions.empty()) models_.erase(model);
}

void Store::State::activate(std::string_view model, std::string_view name) {
  if (levels.back()->tables_are_snapshots()) check_writable("activating a version");
  if (!version(model, name)) throw Error(Kind::usage, cat("the store has no version '", name, "' of '", model, "'"));
  {
    const std::lock_guard lock(pointers_);
    models_.find(model)->second.active = name;
  }
  commit();
}

void Store::State::unload(std::string_view model, std::string_view name) {
  if (levels.back()->tables_are_snapshots()) check_writable("unloading a version");
  const VersionPointer gone = version(model, name);
  if (!gone) throw Error(Kind::usage, cat("the store has no version '", name, "' of '", model, "'"));
  {
    const std::lock_guard lock(pointers_);
    const auto found = models_.find(model);
    if (found->second.active == name && found->second.versions.size() > 1)
      throw Error(Kind::usage, cat("version '", name, "' of '", model, "' is active; activate another version first"));
    found->second.versions.erase(found->second.versions.find(name));
    if (found->second.versions.empty()) models_.erase(found);
  }
  for (const std::shared_ptr<StoreTable>& table : gone->tables())
    if (!is_shared(*gone, table)) table->drop();
  commit();
}

int64_t Store::State::compact() {
  const int64_t freed = levels.back()->compact();
  for (const auto& [version, active] : all())
    for (const std::shared_ptr<StoreTable>& table : version->tables()) table->reopen();
  return freed;
}

bool Store::State::refresh() {
  if (!levels.back()->refresh()) return false;
  read_note(levels.back()->note());
  return true;
}

void Store::State::commit() {
  if (levels.back()->writable()) levels.back()->commit(note());
}

}  // namespace hctr
