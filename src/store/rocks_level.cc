#include "store/rocks_level.h"

#include <deque>
#include <utility>

#include "config/json.h"
#include "core/base/expect.h"
#include "store/level_plugins.h"
#include "store/rocks_table.h"
#include "store/table_names.h"

namespace hctr {
namespace {

constexpr const char *kRocksNote = "huge_ctr/note", *kRocksTables = "huge_ctr/table/",
                     *kRocksUnfinished = "huge_ctr/unfinished/";

using KeysAndValues = std::vector<std::pair<std::string, std::string>>;

KeysAndValues values_from(RocksDatabase& database, const char* start, const fs::path& folder) {
  KeysAndValues values;
  const RocksSink sink{&values,
                       [](void* self, const void* key, int64_t key_bytes, const void* value, int64_t value_bytes) {
                         static_cast<KeysAndValues*>(self)->emplace_back(
                             std::string(static_cast<const char*>(key), static_cast<size_t>(key_bytes)),
                             std::string(static_cast<const char*>(value), static_cast<size_t>(value_bytes)));
                         return true;
                       }};
  check_rocks(database.each(nullptr, start, sink), folder);
  return values;
}

RocksChange change_of(const std::string& key, const std::string* value) {
  return {.column = nullptr,
          .key = key.data(),
          .key_bytes = static_cast<int64_t>(key.size()),
          .value = value ? value->data() : nullptr,
          .value_bytes = value ? static_cast<int64_t>(value->size()) : 0};
}

}  // namespace

/// Changes of the default column family. The batch owns their keys and values.
struct RocksLevel::Batch {
  void put(std::string key, std::string value) {
    texts.push_back(std::move(key));
    texts.push_back(std::move(value));
    changes.push_back(change_of(texts[texts.size() - 2], &texts.back()));
  }
  void remove(std::string key) {
    texts.push_back(std::move(key));
    changes.push_back(change_of(texts.back(), nullptr));
  }
  std::deque<std::string> texts{};
  std::vector<RocksChange> changes{};
};

RocksLevel::RocksLevel(const StoreRocksOptions& options) : options_(options) {
  if (options.folder.empty()) throw Error(Kind::config, "a level in RocksDB needs a folder");
  open_database();
  if (writable()) {  // drops tables that an earlier process left partly loaded or partly dropped
    Batch batch;
    for (const auto& [key, value] : values_from(*database_, kRocksUnfinished, options_.folder)) {
      if (const auto column = open_column(key.substr(std::string(kRocksUnfinished).size()), false))
        check(database_->drop(column.get()));
      batch.remove(key);
    }
    if (!batch.changes.empty())
      check(database_->write(batch.changes.data(), static_cast<int64_t>(batch.changes.size())));
  }
  read_catalog();
}

RocksLevel::~RocksLevel() = default;

void RocksLevel::check(const char* problem) const { check_rocks(problem, options_.folder); }

void RocksLevel::open_database() {
  const std::string path = options_.folder.string();
  using Opening = StoreRocksOptions::Opening;
  std::string own;
  if (options_.opening == Opening::follow) {
    if (options_.own_folder.empty())
      throw Error(Kind::config, cat("following the RocksDB database '", path, "' needs an own_folder"));
    create_parent_folder(options_.own_folder / "log");
    own = (options_.own_folder / std::to_string(opened_++ % 2)).string();
  }
  const RocksSettings settings{.path = path.c_str(),
                               .own_path = own.c_str(),
                               .opening = options_.opening == Opening::update      ? RocksOpening::update
                                          : options_.opening == Opening::read_only ? RocksOpening::read_only
                                                                                   : RocksOpening::follow,
                               .background_threads = options_.background_threads,
                               .reader_threads = options_.reader_threads,
                               .cache_bytes = options_.cache_bytes,
                               .direct_reads = options_.direct_reads};
  RocksDatabase* database = nullptr;
  check(rocks_plugin().open(settings, &database));
  database_ = std::shared_ptr<RocksDatabase>(database);
}

std::shared_ptr<RocksColumn> RocksLevel::open_column(const std::string& name, bool create) {
  RocksColumn* column = nullptr;
  check(database_->column(name.c_str(), create, &column));
  return std::shared_ptr<RocksColumn>(column);
}

/// Reads the tables of the last commit. Tables that are already open stay open.
void RocksLevel::read_catalog() {
  std::map<std::string, Member> members;
  for (const auto& [key, text] : values_from(*database_, kRocksTables, options_.folder)) {
    const Json json = Json::parse(text, "the catalog of a store");
    const Json *const space = json.find("namespace"), *const dim = json.find("dim"), *const rows = json.find("rows"),
                      *const adopted = json.find("adopted");
    if (!space || !space->string() || !dim || !dim->integer() || !rows || !rows->integer() || !adopted ||
        !adopted->boolean())
      throw Error(Kind::data, cat("the RocksDB database '", options_.folder.string(), "': '", key, "' is damaged"));
    Member member{.column = key.substr(std::string(kRocksTables).size()), .adopted = *adopted->boolean()};
    const auto counted = *rows->integer() < 0 ? std::nullopt : std::optional(*rows->integer());
    const auto known = members_.find(*space->string());
    if (known != members_.end() && known->second.column == member.column) {
      member.rows = known->second.rows;
      member.rows->set_rows(counted);
    } else {
      auto column = open_column(member.column, false);
      if (!column && options_.opening == StoreRocksOptions::Opening::follow) {
        members_.clear();  // the catalog is newer than this reader's database: opens the database again
        open_database();
        return read_catalog();
      }
      if (!column)
        throw Error(Kind::data, cat("the RocksDB database '", options_.folder.string(), "' lacks the column family '",
                                    member.column, "'"));
      member.rows =
          std::make_shared<RocksTable>(database_, std::move(column), options_, *dim->integer(), counted, false);
    }
    members.emplace(*space->string(), std::move(member));
  }
  const KeysAndValues notes = values_from(*database_, kRocksNote, options_.folder);
  note_ = notes.empty() ? std::string() : notes[0].second;
  members_ = std::move(members);
}

RocksLevel::Member& RocksLevel::add(const std::string& space, int64_t dim, bool adopted) {
  const bool hugectr = options_.names == StoreNames::hugectr;
  Member member{.column = hugectr ? hugectr_table_name(space) : cat("hctr/", space), .adopted = adopted};
  for (const auto& [name, other] : members_)
    if (other.column == member.column)
      throw Error(Kind::config, cat("'", member.column,
                                    "' can have only one version; unload the existing version first, or remove "
                                    "\"names\": \"hugectr\""));
  auto column = open_column(member.column, false);
  if (adopted) {
    if (!column)
      throw Error(Kind::config, cat("the RocksDB database '", options_.folder.string(), "' has no column family '",
                                    member.column, "' to serve the rows of"));
  } else {
    if (!writable())
      throw Error(Kind::usage,
                  cat("the RocksDB database '", options_.folder.string(), "' is open read-only, and '", space,
                      "' does not exist there; set \"in_level\": true to serve rows that other "
                      "programs wrote"));
    if (column)
      throw Error(Kind::config, cat("the RocksDB database '", options_.folder.string(), "' has the column family '",
                                    member.column, "' of another program; set \"in_level\": true to serve its rows"));
    Batch batch;
    batch.put(cat(kRocksUnfinished, member.column), "");
    check(database_->write(batch.changes.data(), static_cast<int64_t>(batch.changes.size())));
    column = open_column(member.column, true);
  }
  member.rows = std::make_shared<RocksTable>(database_, std::move(column), options_, dim, std::nullopt, !adopted);
  return members_[space] = std::move(member);
}

std::shared_ptr<LevelTable> RocksLevel::table(const std::string& space, int64_t dim, int64_t /*expected*/) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(space);
  if (found == members_.end()) return add(space, dim, false).rows;
  if (found->second.rows->dim() != dim)
    throw Error(Kind::data, cat("'", space, "' has rows of ", found->second.rows->dim(), " elements in '",
                                options_.folder.string(), "', not ", dim));
  return found->second.rows;
}

std::shared_ptr<LevelTable> RocksLevel::adopt(const std::string& space, int64_t dim) {
  if (options_.names != StoreNames::hugectr)
    throw Error(Kind::config, "to use existing rows in RocksDB, set \"names\": \"hugectr\"");
  const std::lock_guard lock(mutex_);
  return add(space, dim, true).rows;
}

std::vector<std::string> RocksLevel::namespaces() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

void RocksLevel::drop(const std::string& space) {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(space);
  if (found == members_.end()) return;
  if (!found->second.adopted) dropped_.push_back({found->second.column, found->second.rows->column()});
  members_.erase(found);
}

void RocksLevel::set_held(const std::string& space, bool held) {
  const std::lock_guard lock(mutex_);
  if (const auto found = members_.find(space); found != members_.end()) found->second.held = held;
}

std::string RocksLevel::note() const {
  const std::lock_guard lock(mutex_);
  return note_;
}

void RocksLevel::commit(const std::string& note) {
  const std::lock_guard lock(mutex_);
  Batch batch;
  std::vector<std::pair<RocksTable*, std::optional<int64_t>>> changed;
  for (const auto& [key, text] : values_from(*database_, kRocksTables, options_.folder)) batch.remove(key);
  for (auto& [space, member] : members_) {
    std::optional<int64_t> rows = member.rows->known_rows();
    if (member.held) {
      if (member.rows->fresh()) continue;
    } else {
      member.rows->finish();
      if (member.rows->fresh()) batch.remove(cat(kRocksUnfinished, member.column));
      rows = member.rows->collect(batch.changes);
      changed.emplace_back(member.rows.get(), rows);
    }
    Json json;
    json.set("namespace", space);
    json.set("dim", member.rows->dim());
    // With HugeCTR's names, other programs may change the table, so its number of rows is unknown.
    json.set("rows", options_.names == StoreNames::hugectr ? int64_t{-1} : rows.value_or(-1));
    json.set("adopted", member.adopted);
    batch.put(cat(kRocksTables, member.column), json.text());
  }
  for (const Dropped& one : dropped_) batch.put(cat(kRocksUnfinished, one.column), "");
  batch.put(kRocksNote, note);
  check(database_->write(batch.changes.data(), static_cast<int64_t>(batch.changes.size())));
  note_ = note;
  for (const auto& [table, rows] : changed) table->committed(rows);
  if (dropped_.empty()) return;
  Batch done;
  for (const Dropped& one : std::exchange(dropped_, {})) {
    check(database_->drop(one.rows.get()));
    done.remove(cat(kRocksUnfinished, one.column));
  }
  check(database_->write(done.changes.data(), static_cast<int64_t>(done.changes.size())));
}

void RocksLevel::roll_back() {
  const std::lock_guard lock(mutex_);
  for (auto& [space, member] : members_) member.rows->roll_back();
  std::erase_if(members_, [this](const auto& one) {
    if (!one.second.rows->fresh()) return false;
    dropped_.push_back({one.second.column, one.second.rows->column()});
    return true;
  });
}

bool RocksLevel::refresh() {
  if (options_.opening != StoreRocksOptions::Opening::follow) return false;
  const std::lock_guard lock(mutex_);
  const std::string before = note_;
  if (database_->catch_up()) {
    // RocksDB 7.8 cannot add new column families to an open follower, so the database is opened again. Readers keep the
    // previous database.
    members_.clear();
    open_database();
  }
  read_catalog();
  return note_ != before;
}

int64_t RocksLevel::verify() {
  const std::lock_guard lock(mutex_);
  check(database_->verify());
  int64_t rows = 0;
  for (const auto& [space, member] : members_)
    in_context([&name = space] { return cat("verifying '", name, "'"); },
               [&rows, &table = *member.rows] {
                 table.each([&](std::span<const int64_t> keys, auto) { rows += std::ssize(keys); });
               });
  return rows;
}

int64_t RocksLevel::compact() {
  const std::lock_guard lock(mutex_);
  int64_t freed = 0;
  for (const auto& [space, member] : members_) {
    RocksColumn* const column = member.rows->column().get();
    const int64_t before = database_->bytes(column);
    check(database_->compact(column));
    freed += before - database_->bytes(column);
  }
  return freed;
}

}  // namespace hctr
