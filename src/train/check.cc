// --check: the config alone.
#include "base/files.h"
#include "data/formats/format_table.h"
#include "hctr/solver.h"
#include "train/load_config.h"
#include "train/placement_plan.h"

namespace hctr {

std::string check(const JobOptions& options, const std::function<void(std::string_view)>& note) {
  const Log log([&](Level level, std::string_view line) {
    note(level == Level::warning ? cat("warning: ", line) : std::string(line));
  });
  const Config config = load_config(options.config, options.strict, log, options.changes);
  Problems problems;
  const Graph graph = wire(config, config.solver.batchsize, problems);
  const std::string name = options.config.string();
  problems.throw_if_any(name);

  const auto mention = [&](const std::string& file, const std::string& pointer) {
    if (!file.empty() && !fs::exists(file))
      note(cat("note: ", name, " ", pointer, ": there is no file '", file, "' here yet"));
  };
  if (format_type(config.data.format).files) {  // else the sources are no files
    mention(config.data.source, "/layers/0/source");
    mention(config.data.eval_source, "/layers/0/eval_source");
  }
  mention(config.solver.dense_model_file, "/solver/dense_model_file");
  for (const std::string& file : config.solver.sparse_model_file) mention(file, "/solver/sparse_model_file");
  mention(config.solver.dense_opt_states_file, "/solver/dense_opt_states_file");
  for (const std::string& file : config.solver.sparse_opt_states_file) mention(file, "/solver/sparse_opt_states_file");
  for (const Pretrained& from : config.solver.pretrained)
    for (const std::string& file : {from.file, from.keys, from.vectors}) mention(file, "/solver/pretrained");
  mention(config.solver.placement_file, "/solver/placement_file");
  return layer_table(config, graph) + plan_outlook(config);
}

}  // namespace hctr
