// The description of a store in its lowest level: versions and their tables.
#include <algorithm>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "store/store_state.h"

namespace hctr {
namespace {

const Json& member_of(const Json& json, const char* name) {
  const Json* const found = json.find(name);
  if (!found) throw Error(Kind::data, cat("the catalog of a store lacks '", name, "'"));
  return *found;
}

std::string text_of_member(const Json& json, const char* name) {
  const std::string* const text = member_of(json, name).string();
  if (!text) throw Error(Kind::data, cat("the catalog of a store needs a string in '", name, "'"));
  return *text;
}

int64_t number_of_member(const Json& json, const char* name) {
  const int64_t* const number = member_of(json, name).integer();
  if (!number) throw Error(Kind::data, cat("the catalog of a store needs an integer in '", name, "'"));
  return *number;
}

const Json::Array& list_of_member(const Json& json, const char* name) {
  const Json::Array* const list = member_of(json, name).array();
  if (!list) throw Error(Kind::data, cat("the catalog of a store needs a list in '", name, "'"));
  return *list;
}

Json to_json_note(const StoreTable& table) {
  const StoreTable::About about = table.about();
  Json json, slots(Json::Array{});
  json.set("name", about.name);
  json.set("dim", about.dim);
  json.set("by_slot", about.by_slot);
  json.set("default", static_cast<double>(about.default_value));
  json.set("content", about.content);
  json.set("namespace", about.space);
  for (const auto& [slot, name] : table.spaces()) slots.add(static_cast<int64_t>(slot));
  json.set("slots", std::move(slots));
  return json;
}

}  // namespace

Json Store::State::note_of(const Version& version) {
  Json note, tables(Json::Array{});
  note.set("name", version.name);
  note.set("run", version.run);
  note.set("iteration", version.progress->iteration.load());
  note.set("newest", version.progress->newest.load());
  note.set("position", version.progress->position);
  note.set("on_miss_error", version.on_miss == OnMiss::error);
  for (const auto& table : version.tables()) tables.add(to_json_note(*table));
  note.set("tables", std::move(tables));
  return note;
}

std::string Store::State::note() const {
  Json note, models(Json::Array{});
  note.set("next", next_space_);
  const std::lock_guard lock(pointers_);
  for (const auto& [name, model] : models_) {
    Json of_model, versions(Json::Array{});
    of_model.set("name", name);
    of_model.set("active", model.active);
    for (const auto& [version_name, version] : model.versions)
      versions.add(version->noted ? *version->noted : note_of(*version));
    of_model.set("versions", std::move(versions));
    models.add(std::move(of_model));
  }
  note.set("models", std::move(models));
  return note.text();
}

void Store::State::read_note(const std::string& text) {
  if (text.empty()) return;
  Models models;
  const Json note = Json::parse(text, "the catalog of a store");
  next_space_ = number_of_member(note, "next");
  std::map<std::string, std::shared_ptr<StoreTable>> tables;  // [namespace] tables that versions share
  for (const Json& of_model : list_of_member(note, "models")) {
    Model& model = models[text_of_member(of_model, "name")];
    model.active = text_of_member(of_model, "active");
    for (const Json& of_version : list_of_member(of_model, "versions")) {
      const auto version = std::make_shared<Version>(shared);
      version->model = text_of_member(of_model, "name");
      version->name = text_of_member(of_version, "name");
      version->run = text_of_member(of_version, "run");
      version->progress->iteration = number_of_member(of_version, "iteration");
      version->progress->newest = member_of(of_version, "newest").number();
      if (of_version.find("position")) version->progress->position = text_of_member(of_version, "position");
      if (*member_of(of_version, "on_miss_error").boolean()) version->on_miss = OnMiss::error;
      StoreView::Version::Content content{.tables = {}, .iteration = version->progress->iteration};
      for (const Json& json : list_of_member(of_version, "tables")) {
        std::shared_ptr<StoreTable>& table = tables[text_of_member(json, "namespace")];
        if (!table) {
          table = make_table({.name = text_of_member(json, "name"),
                              .dim = number_of_member(json, "dim"),
                              .by_slot = *member_of(json, "by_slot").boolean(),
                              .default_value = static_cast<float>(member_of(json, "default").number()),
                              .content = text_of_member(json, "content"),
                              .space = text_of_member(json, "namespace")});
          for (const Json& slot : list_of_member(json, "slots")) table->open(static_cast<int32_t>(*slot.integer()), 0);
          table->warm();
        }
        content.tables.push_back(table);
      }
      version->content.replace(std::move(content));
      model.versions[version->name] = version;
    }
  }
  keep_versions(models);
  const std::lock_guard lock(pointers_);
  std::swap(models_, models);
}

void Store::State::keep_versions(Models& next) {
  for (auto& [name, model] : next) {
    const auto known = models_.find(name);
    if (known == models_.end()) continue;
    for (auto& [version_name, version] : model.versions) {
      const auto before = known->second.versions.find(version_name);
      if (before == known->second.versions.end()) continue;
      const Version& kept = *before->second;
      Version::Content content = version->content.get();
      const Version::Content old = kept.content.get();
      const bool same = std::ranges::equal(content.tables, old.tables, [](const auto& a, const auto& b) {
        return a->name() == b->name() && a->dim() == b->dim() && a->about().by_slot == b->about().by_slot;
      });
      if (!same) continue;  // a version with this name was loaded again
      const bool snapshots = levels.back()->tables_are_snapshots();
      std::vector<ChangesOfTable> changes;
      for (size_t t = 0; t < old.tables.size(); ++t) {
        content.tables[t]->continue_statistics(*old.tables[t]);
        if (snapshots) changes.push_back(content.tables[t]->changes_since(*old.tables[t]));
      }
      content.number = old.number + 1;
      kept.content.replace(content);
      kept.run = version->run;
      kept.progress->iteration = version->progress->iteration.load();
      kept.progress->newest = version->progress->newest.load();
      kept.progress->position = version->progress->position;
      if (snapshots) {  // notifies caches; without snapshots, no cache has rows of this store
        count_changes(*kept.progress, changes);
        notify_listeners(kept, changes, content.number);
      }
      version = before->second;
    }
  }
}

}  // namespace hctr
