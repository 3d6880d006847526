#include "store/file_level.h"

#include <set>
#include <utility>

#include "config/checked_json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr int64_t kCatalogSchema = 2;
constexpr const char *kCatalog = "catalog.json", *kCatalogOfStore = "catalog of a store", *kRowsEnding = ".rows";

int64_t number_in(const Json& json, const char* name) {
  const Json* const found = json.find(name);
  if (!found || !found->integer()) throw Error(Kind::data, cat("the catalog of a store lacks '", name, "'"));
  return *found->integer();
}

std::string text_in(const Json& json, const char* name) {
  const Json* const found = json.find(name);
  if (!found || !found->string()) throw Error(Kind::data, cat("the catalog of a store lacks '", name, "'"));
  return *found->string();
}

}  // namespace

FileLevel::FileLevel(const fs::path& folder)
    : folder_(folder), lock_(folder / "", cat("the store '", folder.string(), "'")) {
  create_parent_folder(folder_ / kCatalog);
  std::set<std::string> named = {kCatalog};
  if (fs::exists(folder_ / kCatalog)) {
    const Json catalog = read_checked_json(folder_ / kCatalog, kCatalogOfStore, kCatalogSchema);
    committed_ = static_cast<uint64_t>(number_in(catalog, "commit"));
    files_ = number_in(catalog, "files");
    note_ = text_in(catalog, "note");
    const Json* const tables = catalog.find("tables");
    if (!tables || !tables->array()) throw Error(Kind::data, "the catalog of a store lacks 'tables'");
    for (const Json& table : *tables->array()) {
      const std::string file = text_in(table, "file");
      named.insert(file);
      members_[text_in(table, "namespace")] = {
          file, std::make_shared<RowFile>(folder_ / file, number_in(table, "dim"), 0,
                                          static_cast<uint64_t>(number_in(table, "commit")), number_in(table, "rows"))};
    }
  }
  lock_.keep_folders();
  for (const auto& entry : fs::directory_iterator(folder_))  // removes files that a killed process has left
    if (entry.path().extension() == kRowsEnding && !named.contains(entry.path().filename().string()))
      fs::remove(entry.path());
}

std::string FileLevel::next_file() { return cat("table_", files_++, kRowsEnding); }

std::shared_ptr<LevelTable> FileLevel::table(const std::string& space, int64_t dim, int64_t expected) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(space);
  if (found != members_.end()) {
    if (found->second.rows->dim() != dim)
      throw Error(Kind::data, cat("'", space, "' has rows of ", found->second.rows->dim(), " elements in '",
                                  folder_.string(), "', not ", dim));
    return found->second.rows;
  }
  const std::string file = next_file();
  const auto rows = std::make_shared<RowFile>(folder_ / file, dim, expected, committed_, std::nullopt);
  members_[space] = {file, rows};
  return rows;
}

std::vector<std::string> FileLevel::namespaces() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

void FileLevel::drop(const std::string& space) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(space);
  if (found == members_.end()) return;
  dropped_.push_back(found->second.rows->path());
  members_.erase(found);
}

void FileLevel::set_held(const std::string& space, bool held) {
  const std::lock_guard lock(mutex_);
  if (const auto found = members_.find(space); found != members_.end()) found->second.held = held;
}

void FileLevel::write_catalog(const std::map<std::string, Member>& members, uint64_t commit,
                              const std::string& note) const {
  Json catalog;
  catalog.set("schema", kCatalogSchema);
  catalog.set("commit", static_cast<int64_t>(commit));
  catalog.set("files", files_);
  catalog.set("note", note);
  Json tables(Json::Array{});
  for (const auto& [name, member] : members) {
    if (member.held && member.rows->fresh()) continue;
    const RowFile& rows = *member.rows;
    Json table;
    table.set("namespace", name);
    table.set("file", member.file);
    table.set("dim", rows.dim());
    table.set("rows", member.held ? rows.size() : rows.size_of_next());
    table.set("commit", static_cast<int64_t>(rows.committed() + (member.held ? 0 : 1)));
    tables.add(std::move(table));
  }
  catalog.set("tables", std::move(tables));
  write_text(folder_ / kCatalog, with_checksum(catalog));
}

void FileLevel::commit(const std::string& note) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, member] : members_)
    if (!member.held && member.rows->changed()) member.rows->sync();
  write_catalog(members_, committed_ + 1, note);
  ++committed_;
  note_ = note;
  for (const auto& [name, member] : members_)
    if (!member.held) member.rows->publish();
  for (const auto& [name, member] : members_)
    if (!member.held) member.rows->clear_replaced();
  for (const fs::path& file : std::exchange(dropped_, {})) fs::remove(file);
}

void FileLevel::roll_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, member] : members_) member.rows->roll_back();
}

int64_t FileLevel::verify() {
  const std::lock_guard lock(mutex_);
  int64_t rows = 0;
  for (const auto& [name, member] : members_) {
    RowFile& file = *member.rows;
    in_context([&space = name] { return cat("verifying '", space, "'"); }, [&] { file.verify(); });
    rows += file.size();
  }
  return rows;
}

int64_t FileLevel::compact() {
  const std::lock_guard lock(mutex_);
  int64_t freed = 0;
  std::map<std::string, Member> next = members_;
  for (auto& [name, member] : next) {
    if (member.rows->free_records() == 0) continue;
    const RowFile& old = *member.rows;
    const std::string file = next_file();
    const auto rows = std::make_shared<RowFile>(folder_ / file, old.dim(), old.size(), committed_, std::nullopt);
    member.rows->each(
        [&](std::span<const int64_t> keys, std::span<const float> values) { rows->put(keys, values.data()); });
    rows->sync();
    freed += old.statistics().bytes - rows->statistics().bytes;
    dropped_.push_back(old.path());
    member = {file, rows};
  }
  write_catalog(next, committed_ + 1, note_);
  ++committed_;
  members_ = std::move(next);
  for (const auto& [name, member] : members_) member.rows->publish();
  for (const fs::path& file : std::exchange(dropped_, {})) fs::remove(file);
  return freed;
}

}  // namespace hctr
