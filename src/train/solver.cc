// Starts a run: reads its config, chooses devices and folders, and trains the ranks of this process.
#include "hctr/solver.h"

#include <set>

#include "core/base/file_lock.h"
#include "core/base/host_name.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "infer/load_config.h"
#include "infer/model_encoding.h"
#include "infer/own_files.h"
#include "infer/run_inputs.h"
#include "launch/attempt.h"
#include "launch/start.h"
#include "score/evaluation_data.h"
#include "train/file_watch.h"
#include "train/rank_table.h"
#include "train/run.h"
#include "train/training_columns.h"

namespace hctr {
namespace {

/// The effective config after options of the command line. Shares of a run of max_iter steps are steps there, so that
/// --resume says when a longer run changes the learning rate.
Json effective_config(Config& config) {
  if (config.solver.max_iter) resolve_schedule(config.optimizer.hyper, *config.solver.max_iter);
  Json effective(Json::Object{});
  for (const auto& [name, section] : *config.effective.object())
    effective.set(name, name == "solver"      ? solver_schema().effective(config.solver)
                        : name == "optimizer" ? optimizer_schema().effective(config.optimizer)
                                              : section);
  return effective;
}

/// The folder of a new run; or that of the run that goes on, unless the options name another one. What a checkpoint
/// says is taken only where that folder says the same: a checkpoint of somebody else decides nothing.
RunFolder run_folder(const TrainOptions& options, const Config& config, const std::optional<ResumePoint>& from,
                     const Log& log) {
  if (!from)
    return RunFolder(options.run_dir, options.config,
                     input_files(options.config, config, options.surroundings.environment), log);
  const fs::path folder = options.run_dir.empty() ? from->run_dir() : options.run_dir;
  if (RunFolder::belongs_to(folder, from->run()))
    return RunFolder::go_on(folder, from->run(), from->metrics_bytes(), log);
  if (options.run_dir.empty())
    log.warning("the checkpoint '", from->folder.string(), "' names the run folder '", folder.string(), "', which is ",
                fs::exists(folder) ? "not that of its run" : "not there", ": a new one is made");
  RunFolder other(options.run_dir, options.config,
                  input_files(options.config, config, options.surroundings.environment), log);
  other.set_run(from->run());
  return other;
}

/// A run that has failed goes on from its newest checkpoint.
void resume_own(TrainOptions& options, const CheckpointSection& checkpoint) {
  if (!options.attempt) return;
  if (!checkpoint.given)
    throw Error(Kind::config, cat("'", options.config.string(),
                                  "' has no \"checkpoint\" in the solver, from which --restarts goes on; add it"));
  // Before this run has taken the folder, its checkpoints are those of another one.
  if (options.attempt->owns_checkpoints && !list_checkpoints(checkpoint.folder).empty()) options.resume = "latest";
}

/// Collective. Warns of hosts that do not see the folder of checkpoints, where rank 0 holds the lock: each rank writes
/// its file there, and a run that goes on reads all of them.
void warn_of_other_folders(Communicator& comm, const CheckpointSection& checkpoint, const Log& log) {
  if (!checkpoint.given || comm.size() == 1) return;
  const fs::path lock = fs::path(checkpoint.folder) / kLockName;
  std::set<std::string> hosts;
  for (const std::string& host : comm.gather(fs::exists(lock) ? "" : host_name(), 0))
    if (!host.empty() && hosts.insert(host).second)
      log.warning(
          "a process on ", host, " does not see '", lock.string(),
          "', which rank 0 has made: no run can go on from checkpoints whose folder the processes do not share");
}

/// Trains the ranks of this process.
TrainSummary train_here(TrainOptions options, Processes* others, const Log& log) {
  const bool logs = place_of(others).process == 0;
  const Log quiet = errors_only(log);
  Config config = load_config(options.config, options.strict, logs ? log : quiet, options.changes, {}, options.stop,
                              options.surroundings.environment);
  if (options.seed) config.solver.seed = {static_cast<uint64_t>(*options.seed)};
  if (options.max_iter) {
    config.solver.max_iter = options.max_iter;
    config.solver.num_epochs.reset();
  }
  Ranks ranks(options, config, others, log, "training");
  Job& job = ranks.job;
  config.effective = effective_config(config);
  const std::string source = config.data.source, eval_source = config.data.eval_source;
  const auto name_files = [&](Config& of, int rank) {
    of.data.source = path_of_rank(source, rank);
    of.data.eval_source = path_of_rank(eval_source, rank);
  };
  name_files(config, job.first_rank());
  if (logs) {
    expect_outputs_of_config(options.config, config, options.surroundings.environment);
    expect_metrics_file(options.metrics_file, options.config, config, options.surroundings.environment);
  }
  const CheckpointSection& checkpoint = config.solver.checkpoint;
  std::optional<FolderLock> lock;  // before anybody looks into the folder
  if (logs) resume_own(options, checkpoint);
  if (logs && checkpoint.given) lock.emplace(checkpoint.folder);
  std::optional<ResumePoint> point;
  if (logs) point = find_resume_point(options, config, log);
  if (point) expect_same_run(*point, config, log);
  const bool finished = point && point->finished_for(config);
  if (lock && !finished) take_checkpoint_folder(config, point ? &*point : nullptr, log);
  if (logs && options.attempt) options.attempt->owns_checkpoints = true;
  const bool first_attempt = !options.attempt || options.attempt->number == 0;
  if (logs && !finished && first_attempt) expect_models_stay(config, {point ? point->run() : "", options.run_dir}, log);
  std::optional<FileLock> models_lock;  // a run folder has its own
  if (logs && !finished && !config.solver.snapshot_prefix.empty())
    models_lock.emplace(config.solver.snapshot_prefix, "\"snapshot_prefix\"");
  RunFolder folder = logs && !finished ? run_folder(options, config, point, log) : RunFolder(), no_folder;
  folder.write_config(config.effective);
  if (logs && !finished) prepare_snapshots(config, folder.path(), log);
  if (models_lock) models_lock->keep_folders();
  std::vector<ColumnStatistics> statistics;
  std::vector<std::string> followed;
  if (logs && !finished) {
    followed = first_followed_files(config.data, point ? &point->progress : nullptr, options.stop, log);
    config.data.first_files = paths_of_followed(config.data, followed);
    if (!point) expect_encoding_of_start(config, options.encoding, log);
    statistics = training_statistics(config, point ? &*point : nullptr, log);
    check_training_columns(config, options.allow_unmatched, log);
    check_evaluation_labels(config, options.allow_unmatched, log);
    note_shared_files(config, log);
  }
  TrainSummary summary{.rank = job.first_rank()};
  const auto peers = std::make_shared<LookAheadGroup>();
  job.run([&](Communicator& comm, Device device) {
    const bool first = comm.rank() == 0;
    show_ranks(comm, device, place_of(others), options.surroundings.environment, first ? log : quiet);
    expect_one_config(comm, config);
    warn_of_other_folders(comm, checkpoint, log);
    const std::optional<ResumePoint> from = broadcast(comm, first && point ? &*point : nullptr);
    if (options.attempt) options.attempt->from = from ? from->progress.iterations : 0;
    TrainSummary of_rank;
    if (from && from->finished_for(config)) {
      (first ? log : quiet)
          .info("The run of '", from->folder.string(), "' is finished: there is nothing to do. A larger ",
                config.solver.max_iter ? "max_iter" : "num_epochs", " would train on.");
      of_rank = summary_of(from->progress);
      of_rank.device = describe(device);
      of_rank.run_dir = from->run_dir();
    } else {
      Config own = config;
      name_files(own, comm.rank());
      broadcast_statistics(comm, statistics, own);
      broadcast_followed(comm, followed, own.data);
      Run run(options, own, {comm, device, ranks.threads, peers}, first ? folder : no_folder, from ? &*from : nullptr,
              first ? log : quiet);
      of_rank = or_abort(comm, [&] { return run.train(); });
    }
    if (comm.rank() != job.first_rank()) return;
    summary = of_rank;
    summary.rank = comm.rank();
  });
  return summary;
}

}  // namespace

TrainSummary train(const TrainOptions& options) {
  TrainSummary summary;
  run_in_processes(options,
                   [&](Processes* others) { summary = train_here(options, others, Log(options.surroundings.log)); });
  return summary;
}

}  // namespace hctr
