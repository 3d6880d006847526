#include "store/store_state.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "config/problems.h"
#include "core/base/expect.h"
#include "hctr/formats.h"

namespace hctr {
namespace {

constexpr size_t kRowsOfUpdate = 1024;  // rows changed between two checks of the rate

/// From the size of a model file; 0: unknown.
int64_t expected_rows(const StoreTableSource& from) {
  std::error_code error;
  const fs::path keys = from.model_file / formats::kFolderKeys;
  const bool folder = fs::is_directory(from.model_file, error);
  const auto bytes = from.model_file.empty() ? 0 : fs::file_size(folder ? keys : from.model_file, error);
  return error ? 0 : static_cast<int64_t>(bytes) / (folder ? 8 : 8 + 4 * from.dim);
}

}  // namespace

Store::State::State(const StoreOptions& options) : rate_(options.update_rows_per_second) {
  using Kind_ = StoreLevelOptions::Kind;
  for (const StoreLevelOptions& level : options.levels) {
    if (level.kind == Kind_::memory) {
      if (memory || file) throw Error(Kind::config, "expected levels of a store: memory, file, or memory above file");
      memory = std::make_unique<MemoryLevel>(level.most_rows);
      levels.push_back(memory.get());
    } else {
      if (file) throw Error(Kind::config, "expected levels of a store: memory, file, or memory above file");
      if (level.folder.empty()) throw Error(Kind::config, "a level of files needs a folder");
      file = std::make_unique<FileLevel>(level.folder);
      levels.push_back(file.get());
    }
  }
  if (levels.empty()) throw Error(Kind::config, "a store needs a level: memory or file");
  if (!file && options.levels[0].most_rows > 0)
    throw Error(Kind::config, "rows beyond most_rows of the memory need a level of files below it");
  if (file) read_note(file->note());
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

void Store::State::fill(StoreTable& table, const StoreTableSource& from) {
  const auto dim = static_cast<size_t>(table.dim());
  int64_t rows = 0;
  if (!from.by_slot) table.open(0, expected_rows(from));
  read_table(from, [&](std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> values) {
    rows += static_cast<int64_t>(keys.size());
    const auto put = [&](int32_t slot, std::span<const int64_t> some, const float* of) {
      table.open(slot, static_cast<int64_t>(some.size()));
      for (size_t l = 0; l < levels.size(); ++l) table.fill(l, slot, some, of);
    };
    if (!from.by_slot) return put(0, keys, values.data());
    for (size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
      const int32_t slot = slots.empty() ? 0 : slots[begin];
      for (end = begin + 1; end < keys.size() && (slots.empty() || slots[end] == slot);) ++end;
      put(slot, keys.subspan(begin, end - begin), values.data() + begin * dim);
    }
  });
  if (table.rows() != rows)
    throw Error(Kind::data, cat("table '", from.name, "' has ", rows, " rows of ", table.rows(), " different keys"));
}

std::shared_ptr<StoreTable> Store::State::same_table(const Model* model, const StoreTableSource& from,
                                                     const std::string& content) const {
  if (!model || content.empty()) return nullptr;
  for (const auto& [name, version] : model->versions)
    for (const std::shared_ptr<StoreTable>& table : version->tables) {
      const StoreTable::About about = table->about();
      if (about.name == from.name && about.content == content && about.dim == from.dim &&
          about.by_slot == from.by_slot && about.default_value == from.default_value)
        return table;
    }
  return nullptr;
}

void Store::State::load(const StoreModel& from) {
  if (from.name.empty() || from.version.empty())
    throw Error(Kind::usage, "a model of a store needs a name and a version");
  if (version(from.name, from.version))
    throw Error(Kind::usage, cat("the store has version '", from.version, "' of model '", from.name,
                                 "' already; unload it, or give this one another name"));
  const auto next = std::make_shared<Version>();
  next->model = from.name;
  next->name = from.version;
  next->run = from.run;
  next->on_miss = from.on_miss;
  next->progress->iteration = from.iteration;
  std::vector<std::shared_ptr<StoreTable>> made;
  const auto found = models_.find(from.name);  // only this thread changes it, because it holds `changing`
  try {
    for (const StoreTableSource& source : from.tables) {
      if (source.dim < 1) throw Error(Kind::config, cat("table '", source.name, "' needs its dim, at least 1"));
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
        in_context([&] { return cat("loading table '", source.name, "' of model '", from.name, "'"); },
                   [&] { fill(*table, source); });
      }
      for (const std::shared_ptr<StoreTable>& other : next->tables)
        if (other->about().name == source.name)
          throw Error(Kind::config, cat("model '", from.name, "' has two tables '", source.name, "'"));
      next->tables.push_back(std::move(table));
    }
  } catch (...) {
    for (const std::shared_ptr<StoreTable>& table : made) table->drop();
    throw;
  }
  {
    const std::lock_guard lock(pointers_);
    Model& model = models_[from.name];
    model.versions[from.version] = next;
    if (model.active.empty()) model.active = from.version;
  }
  commit();
}

void Store::State::activate(std::string_view model, std::string_view name) {
  if (!version(model, name)) throw Error(Kind::usage, cat("the store has no version '", name, "' of '", model, "'"));
  {
    const std::lock_guard lock(pointers_);
    models_.find(model)->second.active = name;
  }
  commit();
}

void Store::State::unload(std::string_view model, std::string_view name) {
  const VersionPointer gone = version(model, name);
  if (!gone) throw Error(Kind::usage, cat("the store has no version '", name, "' of '", model, "'"));
  {
    const std::lock_guard lock(pointers_);
    const auto found = models_.find(model);
    if (found->second.active == name && found->second.versions.size() > 1)
      throw Error(Kind::usage, cat("version '", name, "' of '", model, "' is active; activate another one first"));
    found->second.versions.erase(found->second.versions.find(name));
    if (found->second.versions.empty()) models_.erase(found);
  }
  for (const std::shared_ptr<StoreTable>& table : gone->tables)
    if (!is_shared(*gone, table)) table->drop();
  commit();
}

bool Store::State::is_shared(const Version& by, const std::shared_ptr<StoreTable>& table) const {
  for (const auto& [version, active] : all())
    if (version->name != by.name && std::ranges::find(version->tables, table) != version->tables.end()) return true;
  return false;
}

std::shared_ptr<StoreTable> Store::State::copy_of(const StoreTable& table) {
  StoreTable::About about = table.about();
  about.space = cat(about.space.substr(0, about.space.rfind('/') + 1), next_space_++);
  about.content.clear();
  const std::shared_ptr<StoreTable> copy = make_table(about);
  for (const auto& [slot, name] : table.spaces()) copy->open(slot, 0);
  table.each([&](int32_t slot, std::span<const int64_t> keys, std::span<const float> rows) {
    for (size_t l = 0; l < levels.size(); ++l) copy->fill(l, slot, keys, rows.data());
  });
  return copy;
}

/// Checks an update before it changes anything.
void Store::State::check_change(const StoreTable& table, const ChangesOfTable& changes, int64_t rows_after) const {
  int64_t rows = table.rows();
  for (const auto& [slot, change] : changes) {
    if (slot != 0 && !table.about().by_slot)
      throw Error(Kind::data, cat("an update of slot ", slot, " of table '", table.about().name,
                                  "', whose rows belong to keys alone"));
    for (const int64_t key : change.keys) rows += !table.contains(slot, key);
    const std::unordered_set<int64_t> put(change.keys.begin(), change.keys.end());
    for (const int64_t key : change.removed) rows -= table.contains(slot, key) && !put.contains(key);
  }
  if (rows_after >= 0 && rows != rows_after)
    throw Error(Kind::data, cat("table '", table.about().name, "' has ", rows, " rows with the update, but that says ",
                                rows_after, ": it builds on another model"));
}

void Store::State::change(StoreTable& table, size_t level, const ChangesOfTable& changes) {
  for (const auto& [slot, change] : changes) {
    for (size_t first = 0; first < change.removed.size(); first += kRowsOfUpdate) {
      const size_t count = std::min(kRowsOfUpdate, change.removed.size() - first);
      rate_.wait_for(static_cast<int64_t>(count));
      table.remove(level, slot, std::span(change.removed).subspan(first, count));
    }
    for (size_t first = 0; first < change.keys.size(); first += kRowsOfUpdate) {
      const size_t count = std::min(kRowsOfUpdate, change.keys.size() - first);
      rate_.wait_for(static_cast<int64_t>(count));
      table.put(level, slot, std::span(change.keys).subspan(first, count),
                change.rows.data() + first * static_cast<size_t>(table.dim()));
    }
  }
}

bool Store::State::apply(std::string_view model, int64_t iteration, std::vector<ChangesOfTable> changes,
                         const std::vector<int64_t>& rows_after, double written) {
  VersionPointer version = active(model);
  if (iteration <= version->progress->iteration) return false;
  for (size_t t = 0; t < changes.size(); ++t) check_change(*version->tables[t], changes[t], rows_after[t]);
  // Tables of other versions do not change.
  const auto own = std::make_shared<Version>(*version);
  for (size_t t = 0; t < changes.size(); ++t)
    if (!changes[t].empty() && is_shared(*version, own->tables[t])) own->tables[t] = copy_of(*own->tables[t]);
  struct Updates {
    std::vector<StoreTable*> tables{};
    ~Updates() {
      for (StoreTable* table : tables) table->end_update();
    }
  } under_way;
  for (size_t t = 0; t < changes.size(); ++t)
    if (!changes[t].empty()) {
      own->tables[t]->begin_update();
      under_way.tables.push_back(own->tables[t].get());
    }
  // The lowest level first, so that no level shows rows that the lowest one rejected.
  int64_t updated = 0, removed = 0;
  const int64_t before = own->progress->iteration;
  for (size_t l = levels.size(); l-- > 0;) {
    try {
      for (size_t t = 0; t < changes.size(); ++t) change(*own->tables[t], l, changes[t]);
      if (l + 1 < levels.size()) continue;
      {
        const std::lock_guard lock(pointers_);
        models_.find(model)->second.versions.find(version->name)->second = own;
      }
      own->progress->iteration = iteration;
      commit();
    } catch (...) {
      if (l + 1 == levels.size()) {
        levels[l]->roll_back();
        own->progress->iteration = before;
        const std::lock_guard lock(pointers_);
        models_.find(model)->second.versions.find(version->name)->second = version;
      }
      throw;
    }
  }
  for (const ChangesOfTable& table : changes)
    for (const auto& [slot, change] : table) {
      updated += static_cast<int64_t>(change.keys.size());
      removed += static_cast<int64_t>(change.removed.size());
    }
  own->progress->updates += 1;
  own->progress->updated_rows += updated;
  own->progress->removed_rows += removed;
  if (written >= 0) own->progress->newest = written;
  return true;
}

int64_t Store::State::compact() {
  const int64_t freed = file->compact();
  for (const auto& [version, active] : all())
    for (const std::shared_ptr<StoreTable>& table : version->tables) table->reopen();
  return freed;
}

void Store::State::commit() {
  if (!file) return;
  file->commit(note());
}

}  // namespace hctr
