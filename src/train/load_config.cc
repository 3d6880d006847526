#include "train/load_config.h"

#include <algorithm>

#include "config/config_file.h"
#include "config/problems.h"
#include "train/own_files.h"

namespace hctr {

Config load_config(const std::filesystem::path& path, bool strict, const Log& log,
                   const std::vector<std::string>& changes) {
  return load_config(read_config_file(path, changes), path == "-" ? "standard input" : path.string(), strict, log);
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
