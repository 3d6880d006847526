// A training run on one rank: steps, displays, evaluations, snapshots and checkpoints in order, up to a given end.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/memory_reserve.h"
#include "core/comm/collective_error.h"
#include "hctr/trainer.h"
#include "score/evaluator.h"
#include "train/checkpointer.h"
#include "train/file_watch.h"
#include "train/model_saver.h"
#include "train/not_finite_search.h"
#include "train/resume.h"
#include "train/run_folder.h"
#include "train/step_pipeline.h"
#include "train/step_profile.h"

namespace hctr {

/// The device and threads of a rank.
struct RankPlace {
  Communicator& comm;
  Device device;
  int threads;                            ///< number of threads for CPU operators
  std::shared_ptr<LookAheadGroup> peers;  ///< shared with the other ranks of this process
};

/// Callbacks for displays and evaluations. Every rank has the same callbacks; rank 0 calls them.
struct RunHooks {
  /// Each callback returns whether training continues. May be null.
  std::function<bool(const TrainerState&)> displayed{}, evaluated{};
};

/// The trainer options that a run needs.
struct RunOptions {
  const TrainOptions& train;
  const RunHooks& hooks;
};

/// All public calls except getters are collective. `folder` and `log` do nothing on ranks other than 0. `from`: the
/// checkpoint to resume from; null: a new run. The arguments must outlive the run.
class Run {
 public:
  Run(const RunOptions&, Config&, const RankPlace&, RunFolder& folder, const ResumePoint* from, const Log& log);

  // Call once, before all other calls. Errors: those of the parts of a run, with the path of the last saved model.
  void begin();
  // Trains to the end of the config, to the end in the options, or until a stop is requested. Each call continues after
  // the previous call.
  TrainEnd fit(const FitOptions&);
  /// Trains for `steps` steps, without displays, evaluations and saves.
  TrainEnd step(int64_t steps);
  /// Evaluates without effect on training. Returns an empty map if a stop interrupted the evaluation.
  std::map<std::string, double> evaluate_now();
  /// Waits until the checkpoint in progress is complete.
  void finish_checkpoint() { checkpoints_->finish(); }
  /// Ends the run: writes the summary and the last files.
  TrainSummary finish();

  /// Trains on all given samples, in batches.
  TrainEnd step_on(const GivenSamples&);
  std::map<std::string, double> evaluate_on(const GivenSamples&);
  /// Saves the model with optimizer states at a prefix.
  std::vector<fs::path> save_at(const std::string& prefix);
  /// Saves a full checkpoint as a new folder in `folder`, and waits until the checkpoint is complete. Returns its path.
  fs::path save_checkpoint_in(const fs::path& folder);

  // Settings for all later steps.

  /// `rate`: none restores the rate of the schedule.
  void set_learning_rate(std::optional<double> rate) { rate_ = rate; }
  /// The argument is a path that may contain {rank}.
  void set_source(const std::string&);
  void set_evaluation_source(const std::string&);
  /// A name is the name of an embedding, or the first top of a layer.
  void freeze(const std::vector<std::string>& names, bool frozen);
  /// Loads weights and states from files, and keeps all parts without a file. Call check_files() before load(). Errors:
  /// those of check_model_files(), on every rank. Errors of the files in load() end the run.
  void check_files(const WeightFiles&);
  void load(const WeightFiles&);

  /// Waits for queued steps. Not collective.
  TrainerState state();
  const std::string& device() const { return device_; }
  int rank() const { return comm_.rank(); }
  int64_t iteration() const { return now_.iterations; }

 private:
  /// Where training ends: at the first limit that is reached.
  struct End {
    std::optional<int64_t> iteration{}, passes{};
  };
  End end_of_config() const { return {config_.solver.max_iter, config_.solver.num_epochs}; }
  bool passed(const End&) const;
  /// finished(): whether the current call has trained enough. complete(): whether the run has trained enough, according
  /// to its config.
  bool finished() const { return now_.stopped_at || passed(end_); }
  bool complete() const { return now_.stopped_at || passed(end_of_config()); }
  /// Starts a call that trains. Returns whether a stop has already been requested. Collective.
  bool begin_call(const End&);
  TrainEnd end_call();
  /// The data to train on. passes: pass after pass over the source. pass: the rest of the source's current pass. given:
  /// the samples that the caller gives.
  enum class On { passes, pass, given };
  /// Trains until finished(), a stop, or the end of the data. After each step, calls after() with the learning rate.
  /// Returns whether the data have ended.
  bool train(On, const std::function<void(double rate)>& after);
  std::unique_ptr<Replica> make_model();
  std::unique_ptr<StepPipeline> make_pipeline(const ReadProgress&);
  /// Waits for the last step and checks its loss, so that the model is known to be intact.
  void settle();
  void end_profile();
  /// Call after a stop. Calls save_stopped_state(), once per iteration.
  bool leave_stopped();
  /// Waits for the next batch; returns false at the end of the data. Collective: if any rank's reader fails, all ranks
  /// throw the error, and all ranks stop after the same step. Detects a hung rank here, before other ranks would block
  /// on the device.
  bool fetch();
  /// Call on the host between steps. Errors: Error(device) if the system has refused memory during the run, or if free
  /// memory is too small to save the model.
  void expect_memory();
  /// Logs which ranks are waiting for data.
  void say_who_waits(bool waits);
  /// Runs the next step. Returns none at the end of the data, or if training must stop.
  std::optional<int64_t> step(double rate);
  /// The number of steps of the run. Approximate if the number of samples is approximate.
  int64_t steps_of_run() const;
  void after_step(double rate);
  /// Collective. Whether a model that is due may be saved now.
  bool may_save();
  /// Whether after_step() will wait for the step to finish.
  bool waits_after(int64_t iteration) const;
  void evaluate();
  void note_metrics(const Evaluator::Result&);
  void report_evaluation(const Evaluator::Result&, double seconds);
  /// Stops training if evaluations have not improved for long enough. `better`: whether the last evaluation was the
  /// best so far.
  void stop_early(bool better);
  /// Records and returns whether the last evaluation is the best so far.
  bool note_best();
  /// Warns once if a metric that controls training is undefined, with the reason.
  void warn_of_undefined_metrics();
  /// Whether the run saves a best and a final model. Requires that the config allows both models, and that there is a
  /// path for them.
  bool saves_model() const { return config_.solver.final_snapshot && saver_.has_place(); }
  void save_final_model();
  void display(double rate);
  /// Stops training if the hook returns false. Collective if the hook is set.
  void ask(const std::function<bool(const TrainerState&)>& hook, double rate, double mean_loss);
  TrainerState state_with(double loss, double mean_loss, double rate) const;
  std::optional<double> epoch() const;
  double next_rate() const { return rate_.value_or(scheduled_rate(schedule_, now_.iterations + 1)); }
  /// Waits for queued steps and returns the last loss.
  double last_loss() { return trained_ ? pipeline_->finish_and_read_loss() : now_.loss; }
  /// Reports trained rows that classic model files cannot contain.
  void report_unsaved();
  /// For tables with rows in host memory: the fraction of row reads since the last display that were served from the
  /// GPU. None if there were no reads, or if all rows are on the GPU.
  std::optional<double> share_of_reads(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Logs the number of rows in host memory. Once, also logs that rows have moved to host memory.
  void report_host_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Adds two values since the last display: rows of batches that came from disk, and seconds of waiting for the disk.
  void add_disk_figures(const std::map<std::string, std::map<std::string, int64_t>>& counts, TrainedFigures&);
  /// Logs the number of rows on disk. Once, also logs that rows have moved to disk.
  void report_disk_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Logs the steps skipped for fp16 overflow since the last display.
  void report_skipped();
  /// The largest signal number among all ranks; 0 without a signal.
  int stop_signal();
  /// On rank 0, if there are several hosts: totals over all ranks. Collective.
  std::optional<TrainSummary::BetweenHosts> bytes_between_hosts();
  void warn_at_end();
  /// Collective. The results so far, without times and model files.
  TrainSummary summarize();

  /// Checks that all ranks found the same number of samples, because each rank opens the files itself.
  void expect_one_data_set();
  // Defined in run_not_finite.cc:
  static constexpr int64_t kMostSkipped = 100;  // maximum number of consecutive skipped steps ("on_nan": "skip")
  /// Throws if the loss of the last step is not finite, or if an earlier loss that was not finite has stopped the
  /// model. Ignores steps that the model skips. All ranks have the same loss. Call with no step queued.
  void check_finite(double loss);
  /// Collective.
  [[noreturn]] void throw_diverged();
  /// Collective. Runs the step again, and names the tensor, sample and record that made the loss infinite or NaN. With
  /// `spoiled`, names the tensors that the step's update has damaged. Does not throw.
  std::string place_of_not_finite(int64_t step, bool spoiled);
  /// This rank's result as JSON: "order", "row" of the global batch, "samples", "what" and "why".
  std::string report_of(const NotFinite&, const StepPipeline::Again&) const;
  /// Runs body(). After an error, saves the model if it is intact. Adds the path of this model, or of the last saved
  /// model, to the error.
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
  Error with_model(const Error&, const std::string& what);

  // Defined in run_unasked.cc:

  /// On rank 0, records that a model of this iteration is saved because the run stops or fails. Call before saving, so
  /// that no unrecorded model remains if the process is killed.
  void note_unasked_model();
  /// The role of the model of the current iteration. result: a result of the run. unasked: a later model replaces it.
  /// left_out: it is not saved.
  enum class ModelOfStep { result, unasked, left_out };
  /// Call on rank 0 once this iteration is saved. Removes earlier models that were saved because the run stopped or
  /// failed. With `left_out`, also removes the model of this iteration. Models that the config asks for stay.
  void replace_unasked_models(ModelOfStep);
  /// Collective. Saves a checkpoint of a run that stops. Returns whether the checkpoint is complete; if so, no model
  /// has to be saved.
  bool save_stopped_state();

  // Defined in run_trained.cc:

  /// Collective. Records the losses that have had a sample with nonzero weight, and returns all other losses.
  std::vector<CountedSamples::Loss> uncounted_losses();
  /// Collective. Whether any step has had a sample with nonzero weight.
  bool has_trained();
  /// Collective. The reason why nothing has been trained; empty if something has been trained.
  std::string why_untrained();
  std::string why_no_step() const;
  /// Collective. Errors: Error(data) if nothing has been trained.
  void expect_trained();
  /// Collective.
  void warn_of_uncounted_losses();

  // Defined in run_follow.cc:

  /// With "follow", rank 0 starts watching for files.
  void start_following();
  /// Errors: Error(data) if the file that the checkpoint was reading has changed its size.
  void expect_same_followed_file() const;
  /// Stores the names of the files so far for a checkpoint.
  void note_followed();
  /// Whether rank 0 has found new files or the end of all files.
  bool follow_news() const;
  /// Collective. Passes the files that rank 0 has found to the readers of all ranks. `waits`: whether this rank has no
  /// batch.
  void exchange_new_files(bool waits);
  void say_waiting();

  // Defined in run_checkpoint.cc:

  /// The checkpoint that the run resumes from, if it is in the config's checkpoint folder.
  Checkpointer::Saved saved_checkpoint() const;
  /// Logs the tables that every checkpoint saves in full although the config asks for increments.
  void say_what_increments_save() const;
  /// Collective. Chooses GEMM algorithms if the config asks for a search.
  void choose_algorithms();
  ReadProgress read_progress() const;
  Json data_json() const;
  /// Errors: Error(data) if evaluation data or initial models number keys differently from the training data.
  void expect_fitting_data() const;
  void expect_one_numbering() const;
  void expect_one_key_rule() const;
  /// Restores the model and the run's progress from the checkpoint.
  void load_checkpoint();
  /// Collective. `finished`: whether the run is finished.
  void save_checkpoint(bool finished = false);
  /// The contents of a checkpoint at this iteration. No step may be queued.
  Checkpointer::Content checkpoint_content(bool finished);

  const TrainOptions& options_;
  const RunHooks& hooks_;
  ReservedShare to_save_{options_.reserve};
  Config& config_;
  const Log& log_;
  Communicator& comm_;
  RunFolder& folder_;
  Runtime runtime_;
  const Json encoding_contents_;  // contents of the files, other than data, that the Data layer names
  BatchLayout layout_, eval_layout_;
  const ResumePoint* from_;
  bool exact_;  // whether the checkpoint's number of ranks equals the run's
  std::vector<Placement> placements_;
  std::unique_ptr<Replica> model_;
  ModelSaver saver_;
  std::shared_ptr<FileFeed> feed_;    // null without "follow"
  std::unique_ptr<FileWatch> watch_;  // on rank 0: watches for new files
  // seconds of the run at which rank 0 began to wait for files; none while rank 0 is not waiting
  std::optional<double> waiting_since_;
  bool said_waiting_ = false;
  std::shared_ptr<LookAheadGroup> peers_;
  std::unique_ptr<StepPipeline> pipeline_;
  HyperParameters schedule_;    // schedule of the learning rate, in steps
  std::optional<double> rate_;  // replaces the rate of the schedule
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Evaluator> given_evaluator_;  // evaluates given samples; null if none were given
  std::string device_;
  std::string algorithms_;  // GEMM algorithms as text; empty without a search
  RunProgress now_;
  std::vector<SlotMatches> matches_;  // [slot] numbers of keys and values that matched nothing in the last evaluation
  End end_;                           // end of the current call
  struct Intervals {
    int64_t display = 0, eval = 0, snapshot = 0;
  } every_;                                  // intervals of the current call
  std::set<std::string> frozen_;             // names passed to freeze()
  bool stopping_ = false, trained_ = false;  // trained_: whether this process has run a step
  bool called_ = false;                      // whether an earlier call has trained
  bool pass_ended_ = false;                  // whether the reader is at the end of a pass
  bool ended_ = false;                       // whether finish() has been called
  int64_t left_stopped_at_ = -1;             // iteration of the last call of leave_stopped()
  bool in_checkpoint_ = false;               // result of the last call of leave_stopped()
  bool trained_something_ = false;           // last result of has_trained()
  bool diverged_ = false, saved_after_error_ = false;
  int64_t host_row_bytes_ = 0;  // bytes as last reported
  struct Reads {
    int64_t all = 0, from_gpu = 0;
  } reads_;                     // totals at the last display
  int64_t disk_row_bytes_ = 0;  // bytes as last reported
  struct DiskReads {
    int64_t rows = 0, from_disk = 0;
  } disk_reads_;                 // totals at the last display
  int64_t most_not_finite_ = 0;  // maximum number of consecutive steps whose loss may be NaN or infinite
  // size of metrics.jsonl at the end of the run, without the "end" line
  std::optional<int64_t> metrics_bytes_;
  std::optional<ReaderPosition> left_evaluation_;  // start position of an evaluation that a stop has interrupted
  std::unique_ptr<Reporter> report_;
  std::unique_ptr<Checkpointer> checkpoints_;
  std::unique_ptr<StepProfile> profile_;  // null: no profile
};

}  // namespace hctr
