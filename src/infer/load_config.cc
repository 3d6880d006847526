#include "infer/load_config.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "config/config_file.h"
#include "config/problems.h"
#include "config/sections/field_paths.h"
#include "infer/own_files.h"

namespace hctr {
namespace {

bool names_unknown_field(const Problems::Entry& problem) {
  return problem.message.find(" has no field \"") != std::string::npos ||
         problem.message.find(" has no section \"") != std::string::npos;
}

bool names_field_without_effect(const Problems::Entry& note) {
  return note.message.find("\" is accepted and has no effect: ") != std::string::npos;
}

/// Fields of a config that are unknown, or that have no effect in their section.
std::vector<Problems::Entry> unknown_fields(const Json& config) {
  Problems problems;
  read_config(config, problems);
  std::vector<Problems::Entry> unknown;
  for (const auto* list : {&problems.errors(), &problems.warnings()})
    std::copy_if(list->begin(), list->end(), std::back_inserter(unknown), names_unknown_field);
  for (const Problems::Entry& note : problems.notes())
    if (names_field_without_effect(note)) unknown.push_back(note);
  return unknown;
}

/// Finds the last change whose path contains `name`. Returns this path, and its part before `name`.
std::pair<std::string, std::string> typed_path(const std::vector<std::string>& changes, const std::string& name) {
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    const std::string path = change->substr(0, change->find('='));
    for (size_t at = 0; at < path.size();) {
      const size_t end = std::min(path.find('.', at), path.size());
      if (path.compare(at, end - at, name) == 0) return {path, at == 0 ? "" : path.substr(0, at - 1)};
      at = end + 1;
    }
  }
  return {name, ""};
}

/// Throws Error(config) for unknown fields that a change sets.
void check_changed_fields(const Json& before, const Json& after, const std::vector<std::string>& changes) {
  const std::vector<Problems::Entry> now = unknown_fields(after);
  if (now.empty()) return;
  const std::vector<Problems::Entry> old = unknown_fields(before);
  for (const Problems::Entry& unknown : now) {
    const auto is_same = [&](const Problems::Entry& other) { return other.pointer == unknown.pointer; };
    if (std::any_of(old.begin(), old.end(), is_same)) continue;
    const std::string name = unknown.pointer.substr(unknown.pointer.rfind('/') + 1);
    const auto [path, place] = typed_path(changes, name);
    const std::string meant = nearest_field(after, path);
    if (names_field_without_effect(unknown)) {
      if (!meant.ends_with("." + name)) continue;
      throw Error(Kind::config, cat("--set: ", unknown.message, "; did you mean ", meant, "?"));
    }
    throw Error(Kind::config,
                cat("--set: no field \"", name, "\" in ", place.empty() ? "the config" : place,
                    meant.empty() ? "; --explain config lists all fields" : cat("; did you mean ", meant, "?")));
  }
}

Config load_changed(const Json& original, const std::string& name, bool strict, const Log& log,
                    const ConfigLoading& loading) {
  const auto completed = [&](const Json& config) { return loading.complete ? loading.complete(config) : config; };
  const Json config = completed(with_changes(original, loading.changes));
  if (!loading.changes.empty()) check_changed_fields(completed(original), config, loading.changes);
  return load_config(config, name, strict, log);
}

}  // namespace

Config load_config(const std::filesystem::path& path, bool strict, const Log& log, const ConfigLoading& loading) {
  return load_changed(read_config_file(path, {}, loading.stop, loading.environment),
                      path == "-" ? "standard input" : path.string(), strict, log, loading);
}

Config load_config_text(const std::string& text, const std::string& name, bool strict, const Log& log,
                        const ConfigLoading& loading) {
  return load_changed(read_config_text(text, name, loading.environment), name, strict, log, loading);
}

Config load_config(const Json& json, const std::string& name, bool strict, const Log& log) {
  Problems problems;
  Config config = read_config(json, problems);
  const auto in_data = [](const Problems::Entry& error) {
    return error.pointer.starts_with("/layers/0") || error.pointer == "/layers";
  };
  if (std::none_of(problems.errors().begin(), problems.errors().end(),
                   // if the Data layer has errors, wire() would also report every name that the layer defines
                   in_data))
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
