#include "train/load_config.h"

#include <algorithm>

#include "config/config_file.h"
#include "config/problems.h"
#include "train/own_files.h"

namespace hctr {
namespace {

bool names_unknown_field(const Problems::Entry& warning) {
  return warning.message.find(" has no field \"") != std::string::npos;
}

/// Visits every field below `section`, with its path in it, "fc_param.num_output".
template <class Visit>
void each_field(const Json& section, const std::string& path, const Visit& visit) {
  if (!section.object()) return;
  for (const auto& [key, value] : *section.object()) {
    visit(path + key, key);
    each_field(value, path + key + ".", visit);
  }
}

/// The section that holds the value of a pointer; null where there is none.
const Json* section_of(const Json& config, const std::string& pointer) {
  const Json* at = &config;
  const size_t last = pointer.rfind('/');
  for (size_t from = 1; at && from < last;) {
    const size_t end = std::min(pointer.find('/', from), last);
    const std::string name = pointer.substr(from, end - from);
    at = at->array() ? &at->array()->at(std::stoul(name)) : at->find(name);
    from = end + 1;
  }
  return at;
}

/// "; did you mean ...?": the same name deeper in the section, else the nearest name there.
std::string suggestion(const Json* section, const std::string& leaf, const std::string& place) {
  std::vector<std::string> keys;
  std::string same, near;
  if (section)
    each_field(*section, "", [&](const std::string& path, const std::string& key) {
      if (key != leaf) keys.push_back(key);
      if (key == leaf && path != leaf && same.empty()) same = path;
    });
  if (!same.empty()) return cat("; did you mean ", place, ".", same, "?");
  const std::string best = nearest(leaf, keys);
  return best.empty() ? "; --explain config lists all fields" : cat("; did you mean \"", best, "\"?");
}

/// The section of the change that names such a field, as it was typed; else that of the pointer.
std::string typed_place(const std::vector<std::string>& changes, const std::string& pointer, const std::string& leaf) {
  for (const std::string& change : changes) {
    const std::string path = change.substr(0, change.find('='));
    if (path.ends_with("." + leaf)) return path.substr(0, path.size() - leaf.size() - 1);
  }
  std::string place = pointer.substr(0, pointer.rfind('/'));
  std::replace(place.begin(), place.end(), '/', '.');
  return place.empty() ? "the config" : place.substr(1);
}

/// A field that only a change names must exist: who types it means it. Errors: Error(config).
void check_changed_fields(const Json& before, const Json& after, const std::vector<std::string>& changes) {
  Problems old, now;
  read_config(after, now);
  if (std::none_of(now.warnings().begin(), now.warnings().end(), names_unknown_field)) return;
  read_config(before, old);
  for (const auto& warning : now.warnings()) {
    const auto is_same = [&](const Problems::Entry& other) { return other.pointer == warning.pointer; };
    if (!names_unknown_field(warning) || std::any_of(old.warnings().begin(), old.warnings().end(), is_same)) continue;
    const std::string leaf = warning.pointer.substr(warning.pointer.rfind('/') + 1);
    const std::string place = typed_place(changes, warning.pointer, leaf);
    throw Error(Kind::config, cat("--set: no field \"", leaf, "\" in ", place,
                                  suggestion(section_of(after, warning.pointer), leaf, place)));
  }
}

}  // namespace

Config load_config(const std::filesystem::path& path, bool strict, const Log& log,
                   const std::vector<std::string>& changes, const std::function<Json(const Json&)>& complete) {
  const auto completed = [&](const Json& config) { return complete ? complete(config) : config; };
  const Json original = read_config_file(path), file = completed(original);
  const Json config = completed(with_changes(original, changes));
  if (!changes.empty()) check_changed_fields(file, config, changes);
  return load_config(config, path == "-" ? "standard input" : path.string(), strict, log);
}

Config load_config(const Json& json, const std::string& name, bool strict, const Log& log) {
  Problems problems;
  Config config = read_config(json, problems);
  const auto in_data = [](const Problems::Entry& error) {
    return error.pointer.starts_with("/layers/0") || error.pointer == "/layers";
  };
  if (std::none_of(problems.errors().begin(), problems.errors().end(),
                   in_data))  // else every name that the data makes would be reported too
    wire(config, config.solver.batchsize, problems);
  if (strict) problems.make_strict();
  problems.throw_if_any(name);
  for (const auto& warning : problems.warnings()) log.warning(name, " ", warning.pointer, ": ", warning.message);
  config.data.source = path_on_host(config.data.source);
  config.data.eval_source = path_on_host(config.data.eval_source);
  for (const auto& note : problems.notes()) log.info("note: ", name, " ", note.pointer, ": ", note.message);
  return config;
}

}  // namespace hctr
