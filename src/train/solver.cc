// The solver: steps, displays, evaluations and snapshots in their order.
#include "hctr/solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/current_error.h"
#include "base/files.h"
#include "checkpoint/checkpoint_folder.h"
#include "comm/collective_error.h"
#include "embedding/plan_file.h"
#include "metrics/best_possible.h"
#include "train/best_metrics.h"
#include "train/checkpointer.h"
#include "train/choose_device.h"
#include "train/evaluator.h"
#include "train/job.h"
#include "train/load_config.h"
#include "train/model_saver.h"
#include "train/placement_plan.h"
#include "train/reporter.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace hctr {
namespace {

bool every(int64_t interval, int64_t iteration) { return interval > 0 && iteration % interval == 0; }

/// The run of one rank. All ranks make the same collective calls. `folder` and `log` are silent on ranks other than 0.
/// `from`: the checkpoint that it goes on from, if any.
class Run {
 public:
  Run(const TrainOptions& options, const Config& config, Device device, int threads, Communicator& comm,
      RunFolder& folder, const ResumePoint* from, const Log& log)
      : options_(options),
        config_(config),
        log_(log),
        comm_(comm),
        folder_(folder),
        runtime_(device, {.threads = threads,
                          .seed = config.solver.seed.value,
                          .tf32 = config.solver.enable_tf32_compute,
                          .sync_launches = options.sync_launches}),
        layout_(batch_shape(config.data, rows_per_rank(config.solver.batchsize, comm))),
        eval_layout_(batch_shape(config.data, rows_per_rank(config.solver.eval_batch(), comm))),
        from_(from),
        exact_(from && from->exact_for(config, comm.size())),
        placements_(make_placements(config, runtime_, comm, folder, log, exact_ ? from->plan() : nullptr)),
        model_(config, runtime_, comm, layout_.shape.samples, eval_layout_.shape.samples, Trainer::kBuffers,
               placements_) {
    saver_.emplace(config, comm, model_, folder.path(), log);
    if (from)
      load_checkpoint();
    else
      model_.load(log);
    trainer_ = std::make_unique<Trainer>(config, runtime_, comm, model_, layout_, log, read_progress());
    if (model_.loss_scale()) most_not_finite_ = kMostSkipped;  // such steps are skipped
    if (!config.data.eval_source.empty())
      evaluator_ = std::make_unique<Evaluator>(config, runtime_, comm, model_, eval_layout_, log,
                                               from ? from->progress.eval_reader : ReaderPosition{});
    else
      log.info("No eval_source: nothing is evaluated.");
    expect_one_data_set();
    if (from && comm.rank() == 0) expect_same_data(*from, data_json(), config);
    summary_.device = comm.size() == 1 ? describe(device) : cat(comm.size(), " ranks; rank 0: ", describe(device));
    summary_.run_dir = folder.path();
    if (const auto best = read_best_possible(config.data.eval_source))
      for (const auto& [name, value] : best_metrics(config, *best))
        for (const Metric& metric : config.solver.eval_metrics.metrics)
          if (name == metric.type->name || name.starts_with(metric.type->name + "/"))
            summary_.best_possible[name] = value;
    comm.barrier();  // set-up times differ between ranks; time limits of steps start after it
  }

  TrainSummary run() {
    const SolverSection& solver = config_.solver;
    const int64_t per_epoch = trainer_->samples_in_set();
    int64_t total = 0;
    if (__builtin_mul_overflow(solver.max_iter ? *solver.max_iter : *solver.num_epochs,
                               solver.max_iter ? solver.batchsize : per_epoch, &total))
      total = std::numeric_limits<int64_t>::max();
    const char* about = trainer_->samples_estimated() ? "about " : "";
    log_.info("Training on ", solver.max_iter ? "" : about, with_unit_prefix(static_cast<double>(total)), " samples (",
              about, with_unit_prefix(static_cast<double>(per_epoch)), " in the set), ", model_.dense_parameters(),
              " dense parameters, activations ", name_of(solver.mixed_precision.activations),
              ". Run folder: ", folder_.path().string());
    Reporter report(log_, folder_, total);
    Checkpointer checkpoints(solver.checkpoint, comm_, runtime_.compute_stream(), report,
                             from_ && in_checkpoint_folder(config_, *from_) ? from_->progress.iterations : -1);
    checkpoints_ = &checkpoints;
    if (from_) report.go_on(from_->progress.report);
    if (folder_.metrics_bytes() > 0)
      folder_.add_metrics(Json(Json::Object{{"kind", "resume"}, {"iteration", summary_.iterations}}));
    else
      folder_.add_metrics(Json(Json::Object{{"kind", "start"},
                                            {"schema", kRunSchema},
                                            {"run", folder_.run()},
                                            {"device", summary_.device},
                                            {"samples_in_set", per_epoch},
                                            {"samples_in_all", total}}));
    while (!finished() && !stopping_) {
      const double rate = scheduled_rate(config_.optimizer.hyper, summary_.iterations + 1);
      const auto samples = save_on_error(cat("training iteration ", summary_.iterations + 1), [&] {
        return fetch() ? trainer_->step(summary_.iterations, rate) : std::nullopt;
      });
      if (!samples) {
        ++epochs_;
        if (!finished()) trainer_->restart();
        continue;
      }
      summary_.samples += *samples;
      trained_ = true;
      after_step(++summary_.iterations, rate, report);
    }
    finish(report);
    checkpoints_ = nullptr;
    return summary_;
  }

 private:
  ReadProgress read_progress() const {
    if (!from_) return {};
    const RunProgress& was = from_->progress;
    return {was.reader, was.skipped_records, static_cast<int>(was.key_bytes)};
  }
  Json data_json() const {
    const DataFingerprint print = trainer_->data_fingerprint();
    return Json(
        Json::Object{{"files", print.files}, {"bytes", print.bytes}, {"sizes", static_cast<int64_t>(print.sizes)}});
  }

  /// Takes the model and the numbers of the run from the checkpoint.
  void load_checkpoint() {
    const RunProgress& was = from_->progress;
    model_.load_state(StateReader(from_->folder, from_->manifest, exact_, comm_.rank(), runtime_.compute_stream()));
    summary_ = summary_of(was);
    epochs_ = was.epochs;
    evaluated_at_ = was.evaluated_at;
    eval_seconds_ = was.eval_seconds;
    best_ = was.best;
    best_iteration_ = was.best_iteration;
    const auto exists = [](const std::string& file) { return fs::exists(file); };
    if (was.snapshot_iteration >= 0 && std::all_of(was.snapshot_files.begin(), was.snapshot_files.end(), exists))
      saver_->go_on({was.snapshot_iteration, {was.snapshot_files.begin(), was.snapshot_files.end()}});
    log_.info("Going on with '", from_->folder.string(), "' after iteration ", was.iterations,
              exact_ ? "."
                     : cat(", which ", from_->ranks(), from_->ranks() == 1 ? " rank has" : " ranks have",
                           " saved: rows are placed anew, and numbers may differ in their last bits."));
  }

  RunProgress progress(const Reporter& report) {
    RunProgress now{.iterations = summary_.iterations,
                    .samples = summary_.samples,
                    .epochs = epochs_,
                    .evaluated_at = evaluated_at_,
                    .loss = last_loss(),
                    .skipped_steps = summary_.skipped_steps,
                    .skipped_records = trainer_->skipped_records(),
                    .key_bytes = trainer_->key_bytes(),
                    .eval_seconds = eval_seconds_,
                    .metrics = summary_.metrics,
                    .stopped_at = summary_.stopped_at,
                    .best = best_,
                    .best_iteration = best_iteration_,
                    .report = report.state(),
                    .reader = trainer_->progress().position,
                    .eval_reader = evaluator_ ? evaluator_->position() : ReaderPosition{}};
    if (const auto& last = saver_->last()) {
      now.snapshot_iteration = last->iteration;
      for (const fs::path& file : last->files) now.snapshot_files.push_back(file.string());
    }
    return now;
  }

  /// Collective. `finished`: whether nothing is left to do.
  void save_checkpoint(const Reporter& report, bool finished = false) {
    if (!config_.solver.checkpoint.given || summary_.iterations == 0) return;
    check_finite(last_loss());  // waits for all steps
    Checkpointer::Content content{.iteration = summary_.iterations,
                                  .state = [this](StateWriter to) { model_.save_state(std::move(to)); },
                                  .best_iteration = best_iteration_};
    if (comm_.rank() == 0) {
      const Json plan =
          placements_.empty() ? Json() : plan_to_json(plan_problem(config_, comm_.size(), {}), placements_);
      RunProgress now = progress(report);
      now.finished = finished;
      content.about = about_run(folder_.run(), config_, summary_.device, data_json(), plan);
      content.progress = to_json(now);
      content.progress.set("run_dir", folder_.path().string());
      content.progress.set("metrics_bytes", metrics_bytes_.value_or(folder_.metrics_bytes()));
      content.metrics = folder_.metrics_path();
    }
    checkpoints_->save(std::move(content));
  }

  /// Waits for queued steps.
  double last_loss() { return trained_ ? trainer_->finish_and_read_loss() : summary_.final_loss; }

  /// Runs body(). After an error that leaves the model of the last finished step intact on all ranks, saves it and adds
  /// its path to the error; after others names the last model saved.
  template <class Body>
  std::invoke_result_t<Body> save_on_error(const std::string& what, Body&& body) {
    try {
      return body();
    } catch (const CollectiveError& error) {
      throw CollectiveError(with_model(error, what));
    } catch (...) {
      throw with_model(current_error(), what);
    }
  }
  Error with_model(const Error& error, const std::string& what) {
    // Saving is collective. Unless all ranks threw together, the others are in the step already or have no error.
    const bool together = comm_.size() == 1 || dynamic_cast<const CollectiveError*>(&error);
    const bool intact = error.kind() == Kind::data || error.kind() == Kind::io || error.kind() == Kind::device;
    if (diverged_) return error;
    if (summary_.iterations == 0) return error.with_context(what);
    return error.with_context(cat(what, "; ",
                                  together && intact
                                      ? saver_->save_after_error(summary_.iterations, trainer_->key_bytes())
                                      : saver_->describe_last()));
  }

  static int64_t rows_per_rank(int64_t batch, const Communicator& comm) {
    return (batch + comm.size() - 1) / comm.size();
  }

  bool finished() const {
    if (summary_.stopped_at) return true;
    return config_.solver.max_iter ? summary_.iterations >= *config_.solver.max_iter
                                   : epochs_ >= *config_.solver.num_epochs;
  }
  /// Waits for the next batch; false at the end of the data. Collective: all ranks throw the error of any rank's
  /// reader, and all stop after the same step. It also finds a rank that hangs before the others wait for it on the
  /// device.
  bool fetch() {
    std::optional<Error> failed;
    bool more = false;
    try {
      more = trainer_->fetch();
    } catch (...) {
      failed = current_error();
    }
    const bool diverged = trainer_->steps_not_finite() > most_not_finite_;
    if (!comm_.any(failed || diverged || (options_.stop && *options_.stop != 0))) return more;
    if (comm_.any(diverged)) throw_diverged();
    throw_on_all_ranks(comm_, failed);
    stopping_ = true;
    return more;
  }

  /// Every rank opens the files itself and must find the same number of samples.
  void expect_one_data_set() {
    const auto sizes = comm_.gather(cat(trainer_->samples_in_set()), 0);
    for (size_t r = 1; r < sizes.size(); ++r)
      if (sizes[r] != sizes[0])
        throw Error(Kind::data, cat("'", config_.data.source, "' holds ", sizes[r], " samples for rank ", r, " and ",
                                    sizes[0], " for rank 0: all processes must see the same files"));
  }

  void after_step(int64_t iteration, double rate, Reporter& report) {
    report.queued(summary_.samples);
    if (every(config_.solver.display, iteration)) {
      const double loss = trainer_->finish_and_read_loss();
      report.trained(iteration, summary_.samples, loss, rate);
      check_finite(loss);
      report_skipped(report);
      report.tables(iteration, model_.table_counts());
    }
    if (every(config_.solver.eval_interval, iteration)) evaluate(report);
    if (every(config_.solver.snapshot, iteration) && !summary_.stopped_at) {
      check_finite(trainer_->finish_and_read_loss());
      if (saver_->snapshot(iteration, trainer_->key_bytes())) {
        const auto& files = saver_->last()->files;
        report.event(
            cat("Snapshot: ", files.front().string(), files.size() > 1 ? cat(" and ", files.size() - 1, " more") : ""));
        report_unsaved(report);
      }
    }
    checkpoints_->poll(iteration);
    // Last of all: what it has seen is not done again.
    if (checkpoints_->due(iteration) || best_iteration_ == iteration) {
      check_finite(trainer_->finish_and_read_loss());
      save_checkpoint(report);
    }
  }

  /// Reports trained rows that the classic model files cannot hold.
  void report_unsaved(Reporter& report) const {
    for (const std::string& table : model_.tables_with_shared_row())
      report.event(cat("The row that new keys of the full table '", table,
                       "' share is not in the model file, which holds only rows of single keys."));
  }

  /// Reports the steps skipped for fp16 overflow since the last display.
  void report_skipped(Reporter& report) {
    const auto scale = model_.loss_scale();
    if (!scale || scale->skipped == summary_.skipped_steps) return;
    report.event(cat(scale->skipped - summary_.skipped_steps,
                     scale->skipped - summary_.skipped_steps == 1 ? " step" : " steps",
                     " skipped, whose gradients were infinite or not a number; the loss scale is ", scale->scale));
    summary_.skipped_steps = scale->skipped;
  }

  /// Throws if the loss of the last step is not a number, unless such steps are skipped. All ranks have one loss.
  void check_finite(double loss) {
    if (!std::isfinite(loss) && trainer_->steps_not_finite() >= most_not_finite_) throw_diverged();
  }
  /// Called by all ranks.
  [[noreturn]] void throw_diverged() {
    diverged_ = true;
    const Error error(Kind::data,
                      cat("the loss is not a number at iteration ", summary_.iterations,
                          ": training diverged. Try a smaller learning_rate, or warmup_steps; if it happens at once, "
                          "look for infinite "
                          "or huge dense values in the data; \"on_nan\": \"skip\" leaves such steps out, up to ",
                          kMostSkipped, " in a row. The model is not saved; ", saver_->describe_last()));
    if (comm_.size() == 1) throw error;
    throw CollectiveError(error);
  }

  void evaluate(Reporter& report) {
    if (!evaluator_) return;
    if (summary_.iterations > 0) check_finite(trainer_->finish_and_read_loss());
    const double before = report.seconds();
    const auto finished_result = save_on_error(cat("evaluating after iteration ", summary_.iterations),
                                               [&] { return evaluator_->run(summary_.iterations, options_.stop); });
    if (!finished_result) {
      stopping_ = true;
      return report.event("The evaluation is left unfinished.");
    }
    const Evaluator::Result& result = *finished_result;
    evaluated_at_ = summary_.iterations;
    summary_.metrics = result.metrics;
    for (const Metric& metric : config_.solver.eval_metrics.metrics)
      if (const auto found = result.metrics.find(metric.type->name);
          metric.stop_at && found != result.metrics.end() && metric.type->reached(found->second, *metric.stop_at))
        summary_.stopped_at = metric.word();
    note_best();
    const double took = report.seconds() - before;
    eval_seconds_ += took;
    report.evaluated(summary_.iterations, result.samples, summary_.metrics, took);
    if (summary_.stopped_at) report.event(cat("Reached ", *summary_.stopped_at, ": training ends."));
  }

  /// Whether the last evaluation is the best so far by the metric of keep_best.
  void note_best() {
    const MetricType* type = config_.solver.checkpoint.best();
    const auto found = type ? summary_.metrics.find(type->name) : summary_.metrics.end();
    if (found == summary_.metrics.end() || std::isnan(found->second)) return;
    const auto worse = [&](double a, double b) {
      if (type->better == MetricType::Better::near_one) return std::abs(a - 1) > std::abs(b - 1);
      return type->better == MetricType::Better::higher ? a < b : a > b;
    };
    if (best_ && !worse(*best_, found->second)) return;
    best_ = found->second;
    best_iteration_ = summary_.iterations;
  }

  void finish(Reporter& report) {
    if (summary_.iterations > 0) check_finite(summary_.final_loss = last_loss());
    summary_.seconds = report.seconds() - eval_seconds_;
    summary_.samples_per_second = summary_.seconds > 0 ? static_cast<double>(summary_.samples) / summary_.seconds : 0;
    const bool complete = finished();
    if (complete && evaluated_at_ != summary_.iterations) evaluate(report);
    summary_.interrupted = stopping_ && (!complete || (evaluator_ && evaluated_at_ != summary_.iterations));
    if (summary_.interrupted) {
      summary_.stop_signal = stop_signal();
      report.event(cat("Stopped on request after iteration ", summary_.iterations,
                       config_.solver.final_snapshot ? "; saving the model." : "."));
      save_checkpoint(report);  // first: whoever stops a run may not wait for the model
    }
    summary_.skipped_records = trainer_->skipped_records();
    report_skipped(report);
    for (const std::string& bytes : comm_.gather(cat(used_memory(runtime_.device())), 0))
      summary_.memory.push_back(std::stoll(bytes));
    summary_.tables = model_.table_counts();
    report.tables(summary_.iterations, summary_.tables);
    if (const auto scale = model_.loss_scale()) summary_.loss_scale = scale->scale;
    if (summary_.skipped_records > 0)
      log_.warning(summary_.skipped_records, summary_.skipped_records == 1 ? " bad record was" : " bad records were",
                   " left out");
    if (config_.solver.final_snapshot) save_final_model(report);
    save_on_error("ending training", [&] { run_on_all_ranks(comm_, [&] { model_.check_keys(); }); });
    if (config_.solver.final_snapshot) link_final_model();
    if (comm_.rank() == 0) metrics_bytes_ = folder_.metrics_bytes();  // a run that goes on has no end line yet
    folder_.add_metrics(Json(Json::Object{{"kind", "end"},
                                          {"iteration", summary_.iterations},
                                          {"samples", summary_.samples},
                                          {"loss", summary_.final_loss},
                                          {"seconds", summary_.seconds},
                                          {"interrupted", summary_.interrupted}}));
    folder_.write_summary(summary_);
    if (!summary_.interrupted) save_checkpoint(report, true);
    checkpoints_->finish();
  }

  void save_final_model(Reporter& report) {
    const bool saved_before = saver_->last() && saver_->last()->iteration == summary_.iterations;
    save_on_error("saving the final model",
                  [&] { return saver_->save(summary_.iterations, trainer_->key_bytes()).iteration; });
    if (!saved_before) report_unsaved(report);
  }

  void link_final_model() {
    for (const fs::path& file : saver_->last()->files) {
      summary_.model_files.push_back(file);
      if (comm_.rank() == 0) link_into(file, folder_.path() / cat("final_", file.filename().string()));
    }
  }

  /// The largest of any rank's.
  int stop_signal() {
    int largest = 0;
    for (const std::string& text : comm_.gather(cat(options_.stop ? options_.stop->load() : 0), 0))
      largest = std::max(largest, std::stoi(text));
    return std::stoi(comm_.broadcast(cat(largest), 0));
  }

  /// Hard-links a file of the last snapshot into the run folder as the final model; copies it across file systems. The
  /// model itself is saved already, so that a failure is no error.
  void link_into(const fs::path& file, const fs::path& to) const {
    std::error_code error, ignored;
    fs::remove(to, error);
    fs::create_hard_link(file, to, error);
    if (error) fs::copy_file(file, to, fs::copy_options::overwrite_existing, error);
    if (!error) return;
    fs::remove(to, ignored);
    log_.warning("cannot put a copy of '", file.string(), "' at '", to.string(), "': ", error.message());
  }

  const TrainOptions& options_;
  const Config& config_;
  const Log& log_;
  Communicator& comm_;
  RunFolder& folder_;
  Runtime runtime_;
  BatchLayout layout_, eval_layout_;
  const ResumePoint* from_;
  bool exact_;  // the state in it fits the ranks of this run
  std::vector<Placement> placements_;
  Model model_;
  std::optional<ModelSaver> saver_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Evaluator> evaluator_;
  TrainSummary summary_;
  int64_t epochs_ = 0, evaluated_at_ = -1;
  bool stopping_ = false, trained_ = false;  // trained_: since this process began
  bool diverged_ = false;
  static constexpr int64_t kMostSkipped = 100;
  int64_t most_not_finite_ = 0;  // steps in a row whose loss may be NaN or infinite
  double eval_seconds_ = 0;
  std::optional<double> best_;  // value of keep_best's metric, and when it was reached
  int64_t best_iteration_ = -1;
  std::optional<int64_t> metrics_bytes_;  // at the end, before the last line
  Checkpointer* checkpoints_ = nullptr;   // during run()
};

/// A log that passes errors on and drops the rest, for ranks other than 0.
Log errors_only(const Log& log) {
  return Log([log](Level level, std::string_view line) {
    if (level == Level::error) log.error(line);
  });
}

/// The files that the config names for reading.
std::vector<fs::path> input_files(const TrainOptions& options, const Config& config) {
  const SolverSection& solver = config.solver;
  std::vector<fs::path> files = {options.config};
  for (const std::string& file : {solver.dense_model_file, solver.placement_file, config.data.source,
                                  config.data.eval_source, config.data.feature_spec})
    if (!file.empty()) files.emplace_back(file);
  files.insert(files.end(), solver.sparse_model_file.begin(), solver.sparse_model_file.end());
  for (const EmbeddingEntry& embedding : config.embeddings)
    if (const std::string& keys = embedding.section.hparam.frequent_keys; !keys.empty()) files.emplace_back(keys);
  return files;
}

/// The effective config after options of the command line.
Json with_solver(const Config& config) {
  Json effective(Json::Object{});
  for (const auto& [name, section] : *config.effective.object())
    effective.set(name, name == "solver" ? solver_schema().effective(config.solver) : section);
  return effective;
}

/// The folder of a new run; or that of the run that goes on, unless the options name another one.
RunFolder run_folder(const TrainOptions& options, const Config& config, const std::optional<ResumePoint>& from,
                     const Log& log) {
  if (!from) return RunFolder(options.run_dir, options.config, input_files(options, config), log);
  const fs::path folder = options.run_dir.empty() ? from->run_dir() : options.run_dir;
  if (options.run_dir.empty() || RunFolder::run_of(folder) == from->run())
    return RunFolder::go_on(folder, from->run(), from->metrics_bytes(), log);
  RunFolder other(folder, options.config, input_files(options, config), log);
  other.set_run(from->run());
  return other;
}

/// Trains the ranks of this process.
TrainSummary train_here(const TrainOptions& options, Processes* others, const Log& log) {
  const ProcessPlace place = others ? ProcessPlace{others->process(), others->count()} : ProcessPlace{};
  const bool logs = place.process == 0;
  const Log quiet = errors_only(log);
  Config config = load_config(options.config, options.strict, logs ? log : quiet);
  if (options.seed) config.solver.seed = {static_cast<uint64_t>(*options.seed)};
  if (options.max_iter) {
    config.solver.max_iter = options.max_iter;
    config.solver.num_epochs.reset();
  }
  const std::vector<Device> devices = choose_devices(options.device, config.solver.gpu, place, logs ? log : quiet);
  const int threads = options.threads.value_or(std::max(1, usable_cores() / static_cast<int>(devices.size())));
  Job job(devices, others, std::chrono::seconds(options.comm_timeout), log);
  if (job.ranks() > 1 && logs)
    log.info(job.ranks(), " ranks in ", place.processes, place.processes == 1 ? " process." : " processes.");
  config.effective = with_solver(config);
  const CheckpointSection& checkpoint = config.solver.checkpoint;
  std::optional<FolderLock> lock;  // before anybody looks into the folder
  if (logs && checkpoint.given) lock.emplace(checkpoint.folder);
  std::optional<ResumePoint> point;
  if (logs) point = find_resume_point(options, config, log);
  if (point) expect_same_run(*point, config, log);
  const bool finished = point && point->finished_for(config);
  if (lock && !finished) take_checkpoint_folder(config, point ? &*point : nullptr, log);
  RunFolder folder = logs && !finished ? run_folder(options, config, point, log) : RunFolder(), no_folder;
  folder.write_config(config.effective);
  if (logs && !finished) prepare_snapshots(config, log);
  TrainSummary summary{.rank = job.first_rank()};
  job.run([&](Communicator& comm, Device device) {
    const bool first = comm.rank() == 0;
    const std::optional<ResumePoint> from = broadcast(comm, first && point ? &*point : nullptr);
    TrainSummary of_rank;
    if (from && from->finished_for(config)) {
      (first ? log : quiet)
          .info("The run of '", from->folder.string(), "' is finished: there is nothing to do. A larger ",
                config.solver.max_iter ? "max_iter" : "num_epochs", " would train on.");
      of_rank = summary_of(from->progress);
      of_rank.device = describe(device);
      of_rank.run_dir = from->run_dir();
    } else {
      Run run(options, config, device, threads, comm, first ? folder : no_folder, from ? &*from : nullptr,
              first ? log : quiet);
      of_rank = run.run();
    }
    if (comm.rank() != job.first_rank()) return;
    summary = of_rank;
    summary.rank = comm.rank();
  });
  return summary;
}

}  // namespace

TrainSummary train(const TrainOptions& options) {
  const Log log = Log::to_stderr();
  const auto others = started_processes(std::chrono::seconds(options.comm_timeout));
  if (!others) return train_here(options, nullptr, log);
  try {
    return train_here(options, others.get(), log);
  } catch (...) {
    end_job(*others, current_error());
  }
}

}  // namespace hctr
