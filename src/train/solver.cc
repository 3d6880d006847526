// The solver: steps, displays, evaluations and snapshots in their order.
#include "hctr/solver.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "metrics/best_possible.h"
#include "train/best_metrics.h"
#include "train/choose_device.h"
#include "train/collective_error.h"
#include "train/evaluator.h"
#include "train/job.h"
#include "train/load_config.h"
#include "train/placement_plan.h"
#include "train/reporter.h"
#include "train/trainer.h"

namespace hctr {
namespace {

bool every(int64_t interval, int64_t iteration) { return interval > 0 && iteration % interval == 0; }

/// The run of one rank. All ranks make the same collective calls. `folder` and `log` are silent on ranks other than 0.
class Run {
 public:
  Run(const TrainOptions& options, const Config& config, Device device, int threads, Communicator& comm,
      RunFolder& folder, const Log& log)
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
        model_(config, runtime_, comm, layout_.shape.samples, eval_layout_.shape.samples, Trainer::kBuffers,
               make_placements(config, runtime_, comm, folder, log)) {
    model_.load(log);
    trainer_ = std::make_unique<Trainer>(config, runtime_, comm, model_, layout_, log);
    if (!config.data.eval_source.empty())
      evaluator_ = std::make_unique<Evaluator>(config, runtime_, comm, model_, eval_layout_, log);
    else
      log.info("No eval_source: nothing is evaluated.");
    expect_one_data_set();
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
    const int64_t total = solver.max_iter ? *solver.max_iter * solver.batchsize : *solver.num_epochs * per_epoch;
    const char* about = trainer_->samples_estimated() ? "about " : "";
    log_.info("Training on ", solver.max_iter ? "" : about, with_unit_prefix(static_cast<double>(total)), " samples (",
              about, with_unit_prefix(static_cast<double>(per_epoch)), " in the set), ", model_.dense_parameters(),
              " dense parameters, activations ", name_of(solver.mixed_precision.activations),
              ". Run folder: ", folder_.path().string());
    Reporter report(log_, folder_, total);
    folder_.add_metrics(Json(Json::Object{{"kind", "start"},
                                          {"schema", kRunSchema},
                                          {"device", summary_.device},
                                          {"samples_in_set", per_epoch},
                                          {"samples_in_all", total}}));
    while (!finished() && !should_stop()) {
      const double rate = scheduled_rate(config_.optimizer.hyper, summary_.iterations + 1);
      const auto samples = step_save_on_error(rate);
      if (!samples) {
        ++epochs_;
        if (!finished()) trainer_->restart();
        continue;
      }
      summary_.samples += *samples;
      after_step(++summary_.iterations, rate, report);
    }
    finish(report);
    return summary_;
  }

 private:
  /// Runs body(). When an error of the data or of memory ends training, saves the model of the last finished step and
  /// adds its path to the error.
  template <class Body>
  auto save_on_error(const std::string& what, Body&& body) {
    const auto with_model = [&](const Error& error) { return error.with_context(cat(what, "; ", save_after_error())); };
    try {
      return body();
    } catch (const CollectiveError& error) {
      if (summary_.iterations == 0) throw;
      throw CollectiveError(with_model(error));
    } catch (const Error& error) {
      // Saving is collective. With several ranks the others are in the step already or have no error.
      if (comm_.size() > 1 || summary_.iterations == 0 || (error.kind() != Kind::data && error.kind() != Kind::device))
        throw;
      throw with_model(error);
    }
  }
  std::optional<int64_t> step_save_on_error(double rate) {
    return save_on_error(cat("training iteration ", summary_.iterations + 1),
                         [&] { return trainer_->step(summary_.iterations, rate); });
  }
  std::vector<fs::path> save_model() {
    return model_.save(config_.solver.snapshot_prefix, summary_.iterations, trainer_->key_bytes());
  }
  /// Returns a sentence with the path of the model, or with the reason why saving failed.
  std::string save_after_error() {
    try {
      return cat("iteration ", summary_.iterations, " is saved as ", save_model().front().string());
    } catch (const Error& error) {
      return cat("iteration ", summary_.iterations, " could not be saved: ", error.what());
    }
  }

  static int64_t rows_per_rank(int64_t batch, const Communicator& comm) {
    return (batch + comm.size() - 1) / comm.size();
  }

  bool finished() const {
    if (summary_.stopped_at) return true;
    return config_.solver.max_iter ? summary_.iterations >= *config_.solver.max_iter
                                   : epochs_ >= *config_.solver.num_epochs;
  }
  /// Collective, so that all ranks stop after the same step. It also finds a rank that hangs before the others wait for
  /// it on the device.
  bool should_stop() { return stopping_ = comm_.any(options_.stop && options_.stop->load()); }

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
      trainer_->finish_and_read_loss();
      const auto files = save_model();
      last_snapshot_ = {iteration, files};
      report.event(
          cat("Snapshot: ", files.front().string(), files.size() > 1 ? cat(" and ", files.size() - 1, " more") : ""));
      report_unsaved(report);
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
                     " skipped since fp16 gradients overflowed; the loss scale is ", scale->scale));
    summary_.skipped_steps = scale->skipped;
  }

  void check_finite(double loss) const {
    if (!std::isfinite(loss))
      throw Error(Kind::data,
                  cat("the loss is not a number at iteration ", summary_.iterations,
                      ": training diverged. Try a smaller learning_rate, or warmup_steps; if it happens at once, "
                      "look for infinite or huge dense values in the data"));
  }

  void evaluate(Reporter& report) {
    if (!evaluator_) return;
    const double before = report.seconds();
    const Evaluator::Result result = save_on_error(cat("evaluating after iteration ", summary_.iterations),
                                                   [&] { return evaluator_->run(summary_.iterations); });
    evaluated_at_ = summary_.iterations;
    summary_.metrics = result.metrics;
    for (const Metric& metric : config_.solver.eval_metrics.metrics)
      if (const auto found = result.metrics.find(metric.type->name);
          metric.stop_at && found != result.metrics.end() && metric.type->reached(found->second, *metric.stop_at))
        summary_.stopped_at = metric.word();
    const double took = report.seconds() - before;
    eval_seconds_ += took;
    report.evaluated(summary_.iterations, result.samples, summary_.metrics, took);
    if (summary_.stopped_at) report.event(cat("Reached ", *summary_.stopped_at, ": training ends."));
  }

  void finish(Reporter& report) {
    summary_.interrupted = stopping_ && !finished();
    if (summary_.iterations > 0) summary_.final_loss = trainer_->finish_and_read_loss();
    summary_.seconds = report.seconds() - eval_seconds_;
    summary_.samples_per_second = summary_.seconds > 0 ? static_cast<double>(summary_.samples) / summary_.seconds : 0;
    if (summary_.interrupted)
      report.event(cat("Stopped on request after iteration ", summary_.iterations, "; saving the model."));
    else
      check_finite(summary_.final_loss);
    if (!summary_.interrupted && evaluated_at_ != summary_.iterations) evaluate(report);
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
    if (!last_snapshot_ || last_snapshot_->first != summary_.iterations) {
      last_snapshot_ = {summary_.iterations, save_model()};
      report_unsaved(report);
    }
    save_on_error("ending training", [&] { model_.check_keys(); });
    for (const fs::path& file : last_snapshot_->second) {
      summary_.model_files.push_back(file);
      if (comm_.rank() == 0) link_into(file, folder_.path() / cat("final_", file.filename().string()));
    }
    folder_.add_metrics(Json(Json::Object{{"kind", "end"},
                                          {"iteration", summary_.iterations},
                                          {"samples", summary_.samples},
                                          {"loss", summary_.final_loss},
                                          {"seconds", summary_.seconds},
                                          {"interrupted", summary_.interrupted}}));
    folder_.write_summary(summary_);
  }

  /// Hard-links the last snapshot into the run folder as the final model; copies it across file systems.
  static void link_into(const fs::path& file, const fs::path& to) {
    std::error_code error;
    fs::remove(to, error);
    fs::create_hard_link(file, to, error);
    if (error) fs::copy_file(file, to, fs::copy_options::overwrite_existing, error);
    if (error) throw Error(Kind::io, cat("cannot put the final model at '", to.string(), "': ", error.message()));
  }

  const TrainOptions& options_;
  const Config& config_;
  const Log& log_;
  Communicator& comm_;
  RunFolder& folder_;
  Runtime runtime_;
  BatchLayout layout_, eval_layout_;
  Model model_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Evaluator> evaluator_;
  TrainSummary summary_;
  int64_t epochs_ = 0, evaluated_at_ = -1;
  bool stopping_ = false;
  double eval_seconds_ = 0;
  std::optional<std::pair<int64_t, std::vector<fs::path>>> last_snapshot_;
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
  RunFolder folder = logs ? RunFolder(options.run_dir, options.config, input_files(options, config), log) : RunFolder(),
            no_folder;
  folder.write_config(config.effective);
  TrainSummary summary{.rank = job.first_rank()};
  job.run([&](Communicator& comm, Device device) {
    const bool first = comm.rank() == 0;
    Run run(options, config, device, threads, comm, first ? folder : no_folder, first ? log : quiet);
    const TrainSummary of_rank = run.run();
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
  } catch (const Error& error) {
    end_job(*others, error);
  } catch (const std::exception& error) {
    end_job(*others, Error(Kind::bug, error.what()));
  }
}

}  // namespace hctr
