#include "train/load_config.h"

#include "config/problems.h"

namespace hctr {

Config load_config(const std::filesystem::path& path, bool strict, const Log& log) {
  Problems problems;
  Config config = read_config(Json::read_file(path), problems);
  if (!problems.any_error()) wire(config, config.solver.batchsize, problems);
  if (strict) problems.make_strict();
  problems.throw_if_any(path.string());
  for (const auto& warning : problems.warnings()) log.warning(path.string(), " ", warning.pointer, ": ", warning.message);
  for (const auto& note : problems.notes()) log.info("note: ", path.string(), " ", note.pointer, ": ", note.message);
  return config;
}

}  // namespace hctr
