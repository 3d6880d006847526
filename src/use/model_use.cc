#include "use/model_use.h"

#include <algorithm>

#include "core/base/input_files.h"
#include "formats/data/numbering.h"
#include "formats/model/model_manifest.h"
#include "infer/config_of_model.h"
#include "infer/evaluate_model.h"
#include "infer/run_inputs.h"
#include "score/key_matches.h"

namespace hctr {
namespace {

/// The input files, including the model's files, and all files of the run folder or checkpoint that contains the model.
std::vector<fs::path> files_to_read(const ModelOptions& options, const Config& config, const SavedModel& model) {
  Config own = config;
  own.solver.dense_model_file = model.dense;
  own.solver.sparse_model_file = model.tables;
  std::vector<fs::path> files = input_files(options.config, own, options.surroundings.environment);
  if (const auto manifest = model.dense.empty() ? std::nullopt : manifest_of(model.dense)) {
    files.push_back(manifest->path);
    for (const ModelManifest::Member& member : manifest->members) files.emplace_back(manifest->prefix + member.name);
  }
  std::error_code none;
  if (fs::is_directory(options.model, none)) files.emplace_back(options.model);
  if (model.checkpoint) files.push_back(model.checkpoint->folder);
  if (model.checkpoint && model.checkpoint->manifest.base) files.push_back(model.checkpoint->manifest.base->folder);
  return files;
}

}  // namespace

void choose_data(const ModelOptions& options, Config& config) {
  if (!options.data.empty()) {
    set_evaluation_data(options.data, config);
  } else if (config.data.eval_source.empty()) {
    throw Error(Kind::usage, cat(options.config.empty() ? "the config" : cat("'", options.config.string(), "'"),
                                 " has no eval_source: name the samples with --data"));
  }
}

int use_model(const ModelOptions& options, const std::string& doing, const std::function<void(Config&)>& prepare,
              const std::function<void(ModelOnRank&)>& body, const std::string& out) {
  const Log log(options.surroundings.log), quiet = errors_only(log);
  int first_rank = 0;
  run_in_processes(options, [&](Processes* others) {
    const bool first = place_of(others).process == 0;
    Config config = config_of_model(options, first ? log : quiet);
    config.data.cache_eval_data.most = 0;             // no cache, because each batch is read once
    config.solver.export_predictions_prefix.clear();  // applies only to evaluations during training
    prepare(config);
    std::optional<SavedModel> found;
    if (first) {
      found = find_saved_model(options.model, config, options.surroundings.environment, log);
      expect_encoding(found->encoding, found->name, options.encoding, log);
      expect_numbering(found->numbering, found->name, config.data.eval_source);
      expect_outputs_of_config(options.config, config, options.surroundings.environment);
      expect_no_input(out, "--out", [&] { return files_to_read(options, config, *found); });
    }
    Ranks ranks(options, config, others, log, doing);
    if (found) log.info("Model: ", found->name, ".");
    first_rank = ranks.job.first_rank();
    ranks.job.run([&](Communicator& comm, Device device) {
      const bool here = comm.rank() == 0;
      const int64_t rows = samples_of_rank(config.solver.eval_batch(), comm.size());
      const Log& of_rank = here ? log : quiet;
      LoadedModel model(config, broadcast(comm, here ? &*found : nullptr), comm,
                        {.device = device,
                         .threads = ranks.threads,
                         .sync_launches = options.sync_launches,
                         .samples = rows,
                         .row_memory = row_memory_limits(config.solver.table_memory, device, comm)},
                        of_rank);
      ModelOnRank on{model, batch_layout(model.config(), rows, device), of_rank};
      body(on);
    });
  });
  return first_rank;
}

void report_matches(const ModelOnRank& on, std::vector<SlotMatches> matches, const ModelOptions& options,
                    ModelUse& use) {
  const std::string& data = on.config().data.eval_source;
  if (!options.allow_unmatched) expect_matches(matches, data);
  if (on.comm().rank() != 0) return;
  report_unmatched(matches, data, on.log);
  use.matches = std::move(matches);
}

void describe_use(const ModelOnRank& on, std::chrono::steady_clock::time_point start, ModelUse& use) {
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  use.device = on.comm().size() == 1 ? describe(on.model.device())
                                     : cat(on.comm().size(), " ranks; rank 0: ", describe(on.model.device()));
  use.model = on.saved().name;
  use.iteration = on.saved().iteration;
  use.data = on.config().data.eval_source;
}

}  // namespace hctr
