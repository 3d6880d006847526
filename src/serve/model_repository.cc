#include "serve/model_repository.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <thread>
#include <utility>

#include "core/base/expect.h"
#include "infer/saved_model.h"
#include "serve/proto_text.h"
#include "serve/source_files_state.h"

namespace hctr::serve {

std::string_view word_of(ModelState state) {
  constexpr std::string_view kWords[] = {"READY", "UNAVAILABLE", "LOADING", "UNLOADING"};
  return kWords[static_cast<size_t>(state)];
}

ModelRepository::ModelRepository(const ServeOptions& options, const ServedStore* store)
    : options_(options), store_(store), log_(options.surroundings.log), sources_(scan()) {}

ModelRepository::~ModelRepository() {
  {
    const std::unique_lock lock(mutex_);
    for (auto& [name, entry] : entries_)
      for (auto& [number, loaded] : entry.versions) retired_.push_back(std::move(loaded.version));
    entries_.clear();
  }
  drain();
}

bool ModelRepository::is_saved_model(const std::string& path) const {
  try {
    (void)saved_config(path, options_.surroundings.environment);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void ModelRepository::add_models(const std::string& source, std::map<std::string, ModelSource>& models) const {
  const size_t equals = source.find('=');
  const std::string path = equals == source.npos ? source : source.substr(equals + 1);
  const auto add = [&](const std::string& name, ModelSource model) {
    expect_model_name(name, model.path);
    if (const auto [at, added] = models.emplace(name, model); !added)
      throw Error(Kind::config, cat("two models are named '", name, "': '", at->second.path, "' and '", model.path,
                                    "'; use NAME=PATH to rename one model"));
  };
  if (equals == source.npos && fs::is_directory(path) && !is_saved_model(path) && is_repository(path)) {
    for (const auto& entry : fs::directory_iterator(path))
      if (is_model_folder(entry.path())) add(entry.path().filename().string(), {entry.path().string(), true});
    return;
  }
  if (equals != source.npos && is_model_folder(path)) return add(source.substr(0, equals), {path, true});
  add(equals == source.npos ? name_of_model(path) : source.substr(0, equals), {path, false});
}

std::map<std::string, ModelSource> ModelRepository::scan() const {
  std::map<std::string, ModelSource> models;
  for (const std::string& source : options_.sources) add_models(source, models);
  return models;
}

ModelConfig ModelRepository::config_of(const std::string& model, const ModelSource& source,
                                       const std::optional<std::string>& given) const {
  const fs::path file = fs::path(source.path) / "config.pbtxt";
  Json json{Json::Object{}};
  std::string where = cat("config of model '", model, "'");
  if (given) {
    json = Json::parse(*given, where);
  } else if (source.versioned && fs::exists(file)) {
    where = file.string();
    json = read_proto_text(read_text(file, "config", 1 << 20), where);
  }
  ModelConfig config = read_model_config(json, where, options_.schedule);
  if (!config.name.empty() && config.name != model)
    throw Error(Kind::config, cat(where, ": 'name' is '", config.name, "', but the model's folder is '", model, "'"));
  config.name = model;
  for (const std::string& note : config.notes) log_.info("note: ", note);
  return config;
}

std::map<int64_t, std::string> ModelRepository::wanted_versions(const ModelSource& source,
                                                                const ModelConfig& config) const {
  if (!source.versioned) return {{0, source.path}};
  std::map<int64_t, std::string> versions = versions_in(source.path);
  if (!config.versions.empty())
    std::erase_if(versions, [&](const auto& one) {
      return std::ranges::find(config.versions, one.first) == config.versions.end();
    });
  while (config.newest_versions > 0 && std::ssize(versions) > config.newest_versions) versions.erase(versions.begin());
  if (versions.empty())
    throw Error(Kind::config,
                cat("'", source.path,
                    "' has no version that the version policy selects: expected folders named 1, 2 and so on"));
  return versions;
}

void ModelRepository::set_state(const std::string& model, int64_t version, ModelState state,
                                const std::string& reason) {
  const std::unique_lock lock(mutex_);
  entries_[model].states.insert_or_assign(version, State{state, reason});
}

void ModelRepository::replace(const std::string& model, std::map<int64_t, Loaded> versions,
                              const std::string& reason_of_old) {
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_[model];
  for (auto& [number, old] : entry.versions) {
    const auto now = versions.find(number);
    if (now != versions.end() && now->second.version == old.version) continue;
    retired_.push_back(std::move(old.version));
    entry.states.insert_or_assign(number, State{ModelState::unavailable, reason_of_old});
  }
  for (const auto& [number, loaded] : versions) entry.states.insert_or_assign(number, State{ModelState::ready, ""});
  entry.versions = std::move(versions);
}

void ModelRepository::load(const std::string& model, const std::optional<std::string>& config_text) {
  std::map<std::string, ModelSource> now = scan();
  const auto source = now.find(model);
  if (source == now.end())
    throw Refusal::invalid("failed to load '", model, "': no model of this name is in the repository");
  {
    const std::unique_lock lock(mutex_);
    sources_ = now;
  }
  const std::string state_of_config =
      cat(config_text.value_or(""), state_of_path(fs::path(source->second.path) / "config.pbtxt"));
  std::map<int64_t, Loaded> next;
  std::map<int64_t, Loaded> before;
  {
    const std::shared_lock lock(mutex_);
    if (const auto entry = entries_.find(model); entry != entries_.end()) before = entry->second.versions;
  }
  int64_t at = 0;
  try {
    const ModelConfig config = config_of(model, source->second, config_text);
    for (const auto& [number, path] : wanted_versions(source->second, config)) {
      at = number;
      const std::string fingerprint = cat(state_of_config, state_of_path(path));
      const auto same = std::ranges::find_if(before, [&](const auto& one) {
        return one.second.fingerprint == fingerprint && (at == 0 || at == one.first);
      });
      if (same != before.end()) {
        next.insert(*same);
        continue;
      }
      if (!before.contains(number) && number > 0) set_state(model, number, ModelState::loading, "");
      auto version = std::make_shared<ModelVersion>(config, path, options_, store_ ? store_->tables(model) : nullptr);
      if (store_) store_->expect_same_run(model, version->model().saved());
      const int64_t own = number > 0 ? number : std::max<int64_t>(1, version->iteration());
      log_.info("model '", model, "', version ", own, ": ready (", version->model().saved().name, ")");
      next.emplace(own, Loaded{std::move(version), fingerprint});
    }
  } catch (const std::exception& error) {
    const Status status = status_of_current_exception();
    {
      const std::unique_lock lock(mutex_);
      Entry& entry = entries_[model];
      if (!before.contains(at)) entry.states.insert_or_assign(at, State{ModelState::unavailable, error.what()});
    }
    throw Refusal(status.code, cat("failed to load '", model, "', version ", at, ": ", status.message));
  }
  before.clear();
  replace(model, std::move(next), "replaced");
  const std::map<int64_t, std::string> on_disk =
      source->second.versioned ? versions_in(source->second.path) : std::map<int64_t, std::string>{};
  const std::unique_lock lock(mutex_);
  Entry& entry = entries_[model];
  // Drops the states of versions that are neither loaded nor on disk: the memory of a service whose model is replaced
  // every minute must not grow.
  std::erase_if(entry.states, [&](const auto& one) {
    return one.first == 0 || (!entry.versions.contains(one.first) && !on_disk.contains(one.first));
  });
}

void ModelRepository::unload(const std::string& model) {
  {
    const std::shared_lock lock(mutex_);
    if (!entries_.contains(model) && !sources_.contains(model))
      throw Refusal::invalid("failed to unload '", model, "': there is no model of this name");
  }
  replace(model, {}, "unloaded");
}

void ModelRepository::load_first() {
  const std::vector<std::string>& wanted = options_.load;
  const bool all = options_.control != ModelControl::on_request || std::ranges::find(wanted, "*") != wanted.end();
  std::vector<std::string> names = wanted;
  if (all) {
    names.clear();
    for (const auto& [name, source] : sources_) names.push_back(name);
  }
  for (const std::string& name : names) {
    try {
      load(name);
    } catch (const Refusal& refusal) {
      throw Error(Kind::config, refusal.status().message);
    }
  }
}

void ModelRepository::poll() {
  std::map<std::string, ModelSource> now;
  try {
    now = scan();
  } catch (const std::exception& error) {
    log_.warning("the repository cannot be read at the moment: ", error.what());
    return;
  }
  std::set<std::string> gone;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [name, entry] : entries_)
      if (!now.contains(name) && !entry.versions.empty()) gone.insert(name);
  }
  for (const std::string& name : gone) {
    log_.info("model '", name, "' was removed from the repository and is unloaded");
    unload(name);
  }
  for (const auto& [name, source] : now) {
    std::string state = state_of_model(source.path, source.versioned);
    {
      const std::unique_lock lock(mutex_);
      const auto seen = polled_.find(name);
      if (seen != polled_.end() && seen->second == state) continue;
      polled_[name] = std::move(state);
    }
    try {
      load(name);
    } catch (const std::exception& error) {
      log_.warning(error.what());
    }
  }
}

void ModelRepository::drain() {
  std::vector<std::shared_ptr<ModelVersion>> retired;
  {
    const std::unique_lock lock(mutex_);
    retired.swap(retired_);
  }
  for (std::shared_ptr<ModelVersion>& version : retired) {
    // A thread holds a reference while it submits a request. Waits for these threads, so that the version is destroyed
    // here: its destructor scores the queued requests.
    while (version.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    version.reset();
  }
}

std::shared_ptr<ModelVersion> ModelRepository::find(const std::string& model, const std::string& version,
                                                    int64_t* number) const {
  int64_t wanted = -1;
  if (!version.empty()) {
    const char* end = version.data() + version.size();
    const auto read = std::from_chars(version.data(), end, wanted);
    if (read.ec != std::errc() || read.ptr != end || wanted < 0)
      throw Refusal::invalid("model version must be a number, not '", version, "'");
  }
  const std::shared_lock lock(mutex_);
  const auto entry = entries_.find(model);
  if (entry == entries_.end())
    throw Refusal(Code::not_found, cat("Request for unknown model: '", model, "' is not found"));
  const auto& versions = entry->second.versions;
  if (versions.empty())
    throw Refusal(Code::not_found, cat("Request for unknown model: '", model, "' has no available versions"));
  const auto found = wanted < 0 ? std::prev(versions.end()) : versions.find(wanted);
  if (found == versions.end())
    throw Refusal(Code::not_found, cat("Request for unknown model: '", model, "' version ", wanted, " is not found"));
  if (number) *number = found->first;
  return found->second.version;
}

std::vector<IndexRow> ModelRepository::index(bool ready_only) const {
  const std::shared_lock lock(mutex_);
  std::vector<IndexRow> rows;
  for (const auto& [name, entry] : entries_)
    for (const auto& [number, state] : entry.states)
      if (!ready_only || state.state == ModelState::ready)
        rows.push_back({name, number > 0 ? std::to_string(number) : "", state.state, state.reason});
  for (const auto& [name, source] : sources_)
    if (const auto entry = entries_.find(name);
        !ready_only && (entry == entries_.end() || entry->second.states.empty()))
      rows.push_back({name});
  std::ranges::sort(rows, {}, [](const IndexRow& row) { return std::pair(row.name, row.version); });
  return rows;
}

std::map<int64_t, std::shared_ptr<ModelVersion>> ModelRepository::versions(const std::string& model) const {
  const std::shared_lock lock(mutex_);
  std::map<int64_t, std::shared_ptr<ModelVersion>> all;
  if (const auto entry = entries_.find(model); entry != entries_.end())
    for (const auto& [number, loaded] : entry->second.versions) all.emplace(number, loaded.version);
  return all;
}

std::vector<std::string> ModelRepository::models() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

bool ModelRepository::ready() const {
  const std::shared_lock lock(mutex_);
  return std::ranges::all_of(entries_, [](const auto& one) {
    return !one.second.versions.empty() ||
           std::ranges::all_of(one.second.states, [](const auto& state) { return state.second.reason == "unloaded"; });
  });
}

}  // namespace hctr::serve
