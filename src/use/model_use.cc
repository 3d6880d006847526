#include "use/model_use.h"

#include <algorithm>
#include <cctype>

#include "config/config_file.h"
#include "core/base/input_files.h"
#include "formats/data/numbering.h"
#include "formats/model/model_manifest.h"
#include "train/key_matches.h"
#include "train/load_config.h"
#include "train/run_inputs.h"
#include "train/taken_encoding.h"

namespace hctr {
namespace {

/// The config with the encoding saved with the model, all of it or what it leaves out.
Json completed_config(const ModelOptions& options, const Json& file, std::string& taken) {
  if (options.encoding == EncodingChoice::model)
    return with_encoding_of(saved_config(options.model, options.surroundings.environment).json, file);
  try {
    CompletedConfig completed =
        with_left_out_encoding_of(saved_config(options.model, options.surroundings.environment).json, file);
    taken = completed.taken;
    return completed.config;
  } catch (const Error&) {
    return file;  // whoever loads the model says what is wrong with it
  }
}

/// With the files of the model, and all of the run folder or the checkpoint that holds it.
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

/// Calls body() on one rank.
void run_rank(const Config& config, const SavedModel& saved, Device device, int threads, bool sync_launches,
              Communicator& comm, const Log& log, const std::function<void(LoadedModel&)>& body) {
  RowMemoryLimits row_memory = row_memory_limits(config.solver.table_memory, device, comm);
  row_memory.move_every = 0;  // the uses of rows are counted in training
  Runtime runtime(device, {.threads = threads,
                           .seed = config.solver.seed.value,
                           .tf32 = config.solver.enable_tf32_compute,
                           .tf32x3 = config.solver.tf32x3(),
                           .sync_launches = sync_launches,
                           .several_ranks = comm.size() > 1,
                           .row_memory = row_memory});
  const int64_t rows = samples_of_rank(config.solver.eval_batch(), comm.size());
  const BatchLayout layout = batch_layout(config, rows, device);
  // Nothing is trained: training batches of one row in a ring of one buffer.
  Replica model(config, runtime, comm, 1, rows, 1, {}, ReplicaUse::score);
  load_saved_model(saved, model, comm, runtime, log);
  comm.barrier();  // ranks load for different times; time limits of batches start after it
  LoadedModel loaded{config, saved, device, comm, runtime, model, layout, log};
  body(loaded);
}

}  // namespace

Config config_of_model(const ModelOptions& options, const Log& log) {
  if (!options.config.empty()) {
    if (options.encoding == EncodingChoice::config)
      return load_config(options.config, options.strict, log, options.changes, {}, options.stop,
                         options.surroundings.environment);
    std::string taken;
    const auto complete = [&](const Json& file) { return completed_config(options, file, taken); };
    const Config config = load_config(options.config, options.strict, log, options.changes, complete, options.stop,
                                      options.surroundings.environment);
    if (!taken.empty())
      log.info("note: '", options.config.string(), "' leaves out ", taken, " of its Data layer, and has the model's.");
    return config;
  }
  const SavedConfig saved = saved_config(options.model, options.surroundings.environment);
  return load_config(with_changes(saved.json, options.changes), saved.where, options.strict, log);
}

void choose_data(const ModelOptions& options, Config& config) {
  if (!options.data.empty()) {
    config.data.eval_source = options.data;
    config.data.eval_num_samples = 0;
    config.solver.max_eval_batches.reset();
    config.solver.max_eval_samples.reset();
  } else if (config.data.eval_source.empty()) {
    throw Error(Kind::usage, cat(options.config.empty() ? "the config" : cat("'", options.config.string(), "'"),
                                 " names no eval_source: name the samples with --data"));
  }
}

Source prediction_source(const Config& config) {
  Source source = evaluation_source(config.data);
  source.labels_optional = true;
  for (const SparseInput& input : config.data.sparse) {
    const bool read =
        std::any_of(config.embeddings.begin(), config.embeddings.end(),
                    [&](const EmbeddingEntry& embedding) { return embedding.section.bottom == input.top; });
    source.slots_optional.insert(source.slots_optional.end(), static_cast<size_t>(int64_t{input.slot_num}), !read);
  }
  return source;
}

int use_model(const ModelOptions& options, const std::string& doing, const std::function<void(Config&)>& prepare,
              const std::function<void(LoadedModel&)>& body, const std::string& out) {
  const Log log(options.surroundings.log), quiet = errors_only(log);
  int first_rank = 0;
  run_in_processes(options, [&](Processes* others) {
    const bool first = place_of(others).process == 0;
    Config config = config_of_model(options, first ? log : quiet);
    config.data.cache_eval_data.most = 0;             // each batch is read once
    config.solver.export_predictions_prefix.clear();  // of evaluations during training
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
      const SavedModel saved = broadcast(comm, here ? &*found : nullptr);
      Config own = config;
      use_saved_model(saved, own);
      run_rank(own, saved, device, ranks.threads, options.sync_launches, comm, here ? log : quiet, body);
    });
  });
  return first_rank;
}

void report_matches(const LoadedModel& on, std::vector<SlotMatches> matches, const ModelOptions& options,
                    ModelUse& use) {
  const std::string& data = on.config.data.eval_source;
  if (!options.allow_unmatched) expect_matches(matches, data);
  if (on.comm.rank() != 0) return;
  for (std::string line : lines_of(matches)) {
    line[0] = static_cast<char>(std::toupper(line[0]));
    on.log.info(line, ".");
  }
  warn_of_unmatched(matches, cat("'", data, "'"), on.log);
  use.matches = std::move(matches);
}

void describe_use(const LoadedModel& on, std::chrono::steady_clock::time_point start, ModelUse& use) {
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  use.device = on.comm.size() == 1 ? describe(on.device) : cat(on.comm.size(), " ranks; rank 0: ", describe(on.device));
  use.model = on.saved.name;
  use.iteration = on.saved.iteration;
  use.data = on.config.data.eval_source;
}

}  // namespace hctr
