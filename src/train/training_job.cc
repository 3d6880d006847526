#include "train/training_job.h"

#include <set>

#include "config/json_member.h"
#include "core/base/current_error.h"
#include "core/base/host_name.h"
#include "core/comm/collective_error.h"
#include "infer/load_config.h"
#include "infer/model_encoding.h"
#include "infer/own_files.h"
#include "infer/run_inputs.h"
#include "launch/attempt.h"
#include "score/evaluation_data.h"
#include "train/file_watch.h"
#include "train/rank_table.h"
#include "train/training_columns.h"

namespace hctr {
namespace {

/// Placeholder for the source if samples are given in memory.
constexpr const char* kSourceToCome = "(samples in memory)";

/// Returns the config, with the placeholder kSourceToCome if the config has no source.
Json with_source_to_come(const Json& config) {
  const Json* layers = config.find("layers");
  if (!layers || !layers->array() || layers->array()->empty() || !layers->array()->front().object()) return config;
  const Json& data = layers->array()->front();
  const Json* source = data.find("source");
  if (source && (!source->string() || !source->string()->empty())) return config;
  Json::Array all = *layers->array();
  all.front() = with_member(data, "source", kSourceToCome);
  return with_member(config, "layers", std::move(all));
}

/// The effective config after command-line options. A learning-rate schedule in fractions of max_iter is converted to
/// steps, so that --resume can report that a larger max_iter changes the learning rate.
Json effective_config(Config& config) {
  if (config.solver.max_iter) resolve_schedule(config.optimizer.hyper, *config.solver.max_iter);
  Json effective(Json::Object{});
  for (const auto& [name, section] : *config.effective.object())
    effective.set(name, name == "solver"      ? solver_schema().effective(config.solver)
                        : name == "optimizer" ? optimizer_schema().effective(config.optimizer)
                                              : section);
  return effective;
}

/// The folder of a new or resumed run. If the options name no folder, a resumed run continues in the folder that its
/// checkpoint names, but only if that folder belongs to the same run: a foreign checkpoint must not choose the folder.
RunFolder run_folder(const TrainerOptions& options, const fs::path& file, const Config& config,
                     const std::optional<ResumePoint>& from, const Log& log) {
  if (!options.run_folder) {
    RunFolder unwritten = RunFolder::unwritten();
    if (from) unwritten.set_run(from->run());
    return unwritten;
  }
  const auto new_folder = [&] {
    return RunFolder(options.run_dir, options.config, input_files(file, config, options.surroundings.environment), log);
  };
  if (!from) return new_folder();
  const fs::path folder = options.run_dir.empty() ? from->run_dir() : options.run_dir;
  if (RunFolder::belongs_to(folder, from->run()))
    return RunFolder::go_on(folder, from->run(), from->metrics_bytes(), log);
  if (options.run_dir.empty() && !folder.empty())
    log.warning("the checkpoint '", from->folder.string(), "' names the run folder '", folder.string(), "', which ",
                fs::exists(folder) ? "belongs to another run" : "does not exist", ": creating a new run folder");
  RunFolder other = new_folder();
  other.set_run(from->run());
  return other;
}

/// If this is another attempt of a failed run, resumes from the run's newest checkpoint.
void resume_own(TrainOptions& options, const CheckpointSection& checkpoint) {
  if (!options.attempt) return;
  if (!checkpoint.given)
    throw Error(Kind::config, cat("'", options.config.string(),
                                  "' has no \"checkpoint\" in the solver, which --restarts needs; add "
                                  "\"checkpoint\""));
  // Until this run has claimed the folder, checkpoints in it belong to another run.
  if (options.attempt->owns_checkpoints && !list_checkpoints(checkpoint.folder).empty()) options.resume = "latest";
}

/// Collective. Warns of hosts that cannot see the checkpoint folder that rank 0 has locked. Each rank writes its file
/// to this folder, and a resumed run reads all files.
void warn_of_other_folders(Communicator& comm, const CheckpointSection& checkpoint, const Log& log) {
  if (!checkpoint.given || comm.size() == 1) return;
  const fs::path lock = fs::path(checkpoint.folder) / kLockName;
  std::set<std::string> hosts;
  for (const std::string& host : comm.gather(fs::exists(lock) ? "" : host_name(), 0))
    if (!host.empty() && hosts.insert(host).second)
      log.warning(
          "a process on ", host, " does not see '", lock.string(),
          "', which rank 0 created: a run can only resume from checkpoints in a folder that all processes share");
}

}  // namespace

TrainingJob::TrainingJob(const TrainerOptions& options, Processes* others, bool needs_source)
    : options_(options), others_(others), log_(options.surroundings.log), quiet_(errors_only(log_)) {
  if (options_.config == "-" && options_.config_text.empty() && place_of(others).processes > 1)
    throw Error(Kind::usage, "several processes cannot read the config from the standard input; name a file");
  read_config(needs_source);
  ranks_ = std::make_unique<Ranks>(options_, config_, others_, log_, "training");
  config_.effective = effective_config(config_);
  source_ = config_.data.source;
  eval_source_ = config_.data.eval_source;
  config_.data.source = path_of_rank(source_, first_rank());
  config_.data.eval_source = path_of_rank(eval_source_, first_rank());
  take_folders();
  if (is_first_process() && !nothing_to_do_) look_at_data();
  places_.resize(static_cast<size_t>(ranks_->job.ranks_here()));
  try {
    ranks_->job.run([&](Communicator& comm, Device device) { open(comm, device); });
  } catch (...) {
    ranks_->job.clean_up([&](Communicator& comm, Device) { place(comm).run.reset(); });
    throw;
  }
}

TrainingJob::~TrainingJob() {
  ranks_->job.clean_up([&](Communicator& comm, Device) { place(comm).run.reset(); });
}

void TrainingJob::read_config(bool needs_source) {
  const Log& log = is_first_process() ? log_ : quiet_;
  ConfigLoading loading{
      .changes = options_.changes, .stop = options_.stop, .environment = options_.surroundings.environment};
  if (!needs_source) loading.complete = with_source_to_come;
  if (options_.config_text.empty()) {
    config_file_ = options_.config;
    config_ = load_config(options_.config, options_.strict, log, loading);
  } else {
    config_file_ = "-";
    if (options_.config.empty()) options_.config = "config";
    config_ = load_config_text(options_.config_text, options_.config.string(), options_.strict, log, loading);
  }
  if (config_.data.source == kSourceToCome) config_.data.source.clear();
  if (config_.data.source.empty() && config_.data.follow)
    throw Error(Kind::config, "\"follow\" needs a source that is a folder or a list, to which files are added");
  if (options_.seed) config_.solver.seed = {static_cast<uint64_t>(*options_.seed)};
  if (options_.max_iter) {
    config_.solver.max_iter = options_.max_iter;
    config_.solver.num_epochs.reset();
  }
}

void TrainingJob::take_folders() {
  if (!is_first_process()) return;
  expect_outputs_of_config(config_file_, config_, options_.surroundings.environment);
  expect_metrics_file(options_.metrics_file, config_file_, config_, options_.surroundings.environment);
  const CheckpointSection& checkpoint = config_.solver.checkpoint;
  resume_own(options_, checkpoint);
  if (checkpoint.given) lock_.emplace(checkpoint.folder);  // locks the folder before reading it
  point_ = find_resume_point(options_, config_, log_);
  if (point_) expect_same_run(*point_, config_, log_);
  nothing_to_do_ = point_ && point_->finished_for(config_);
  if (lock_ && !nothing_to_do_) take_checkpoint_folder(config_, point_ ? &*point_ : nullptr, log_);
  if (options_.attempt) options_.attempt->owns_checkpoints = true;
  if (nothing_to_do_) return;
  if (!options_.attempt || options_.attempt->number == 0)
    expect_models_stay(config_, {point_ ? point_->run() : "", options_.run_dir}, log_);
  if (!config_.solver.snapshot_prefix.empty())
    models_lock_.emplace(config_.solver.snapshot_prefix, "\"snapshot_prefix\"");
  folder_.emplace(run_folder(options_, config_file_, config_, point_, log_));
  folder_->write_config(config_.effective);
  prepare_snapshots(config_, folder_->path(), log_);
  if (models_lock_) models_lock_->keep_folders();
}

void TrainingJob::look_at_data() {
  const ResumePoint* from = point_ ? &*point_ : nullptr;
  followed_ = first_followed_files(config_.data, from ? &from->progress : nullptr, options_.stop, log_);
  config_.data.first_files = paths_of_followed(config_.data, followed_);
  if (!from) expect_encoding_of_start(config_, options_.encoding, log_);
  if (!config_.data.source.empty()) {
    statistics_ = training_statistics(config_, from, log_);
    check_training_columns(config_, options_.allow_unmatched, log_);
  }
  check_evaluation_labels(config_, options_.allow_unmatched, log_);
  if (!config_.data.source.empty()) note_shared_files(config_, log_);
}

void TrainingJob::open(Communicator& comm, Device device) {
  const bool first = comm.rank() == 0;
  const Log& log = first ? log_ : quiet_;
  show_ranks(comm, device, place_of(others_), options_.surroundings.environment, log);
  expect_one_config(comm, config_);
  warn_of_other_folders(comm, config_.solver.checkpoint, log);
  Place& own = place(comm);
  own.from = broadcast(comm, first && point_ ? &*point_ : nullptr);
  if (options_.attempt) options_.attempt->from = own.from ? own.from->progress.iterations : 0;
  if (own.from && own.from->finished_for(config_)) {
    log.info("The run of '", own.from->folder.string(), "' is finished: there is nothing to do. A larger ",
             config_.solver.max_iter ? "max_iter" : "num_epochs", " would train on.");
    if (comm.rank() != first_rank()) return;
    finished_ = summary_of(own.from->progress);
    finished_->device = describe(device);
    finished_->run_dir = own.from->run_dir();
    finished_->rank = comm.rank();
    return;
  }
  own.config = config_;
  own.config.data.source = path_of_rank(source_, comm.rank());
  own.config.data.eval_source = path_of_rank(eval_source_, comm.rank());
  if (!source_.empty()) broadcast_statistics(comm, statistics_, own.config);
  broadcast_followed(comm, followed_, own.config.data);
  own.run =
      std::make_unique<Run>(RunOptions{options_, hooks_}, own.config, RankPlace{comm, device, ranks_->threads, peers_},
                            first ? *folder_ : no_folder_, own.from ? &*own.from : nullptr, log);
  try {
    or_abort(comm, [&] { own.run->begin(); });
  } catch (...) {
    own.run.reset();
    throw;
  }
}

void TrainingJob::on_ranks(const std::function<void(Run&)>& body) {
  ranks_->job.run([&](Communicator& comm, Device) {
    std::unique_ptr<Run>& run = place(comm).run;
    try {
      or_abort(comm, [&] { body(*run); });
    } catch (...) {
      run.reset();
      throw;
    }
  });
}

std::optional<Error> TrainingJob::try_on_ranks(const std::function<void(Run&)>& body) {
  std::optional<Error> refused;
  ranks_->job.run([&](Communicator& comm, Device) {
    std::unique_ptr<Run>& run = place(comm).run;
    try {
      or_abort(comm, [&] { body(*run); });
    } catch (const Error& error) {
      if (thrown_on_all_ranks(comm)) {
        if (comm.rank() == first_rank()) refused = error;
        return;
      }
      run.reset();
      throw;
    } catch (...) {
      run.reset();
      throw;
    }
  });
  return refused;
}

std::string TrainingJob::device() const {
  const Run* const run = places_.front().run.get();
  return run ? run->device() : describe(ranks_->devices.front());
}

void TrainingJob::on_display(std::function<bool(const TrainerState&)> callback) {
  hooks_.displayed = for_caller(std::move(callback));
}

void TrainingJob::on_evaluation(std::function<bool(const TrainerState&)> callback) {
  hooks_.evaluated = for_caller(std::move(callback));
}

std::function<bool(const TrainerState&)> TrainingJob::for_caller(std::function<bool(const TrainerState&)> callback) {
  if (!callback) return nullptr;
  return [this, call = std::move(callback)](const TrainerState& state) {
    bool goes_on = true;
    ranks_->job.in_callers_thread([&] { goes_on = call(state); });
    return goes_on;
  };
}

}  // namespace hctr
