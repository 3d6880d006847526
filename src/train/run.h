// A training run on one rank: runs steps, displays, evaluations, snapshots and checkpoints in order, up to the point
// that its caller asks for.
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

/// The devices and threads of a rank.
struct RankPlace {
  Communicator& comm;
  Device device;
  int threads;                            ///< for operators on a CPU
  std::shared_ptr<LookAheadGroup> peers;  ///< with the other ranks of this process
};

/// Callbacks for displays and evaluations. Every rank has the same ones; rank 0 calls them.
struct RunHooks {
  /// Each returns whether to continue training. May be null.
  std::function<bool(const TrainerState&)> displayed{}, evaluated{};
};

/// The trainer options that each of its runs needs.
struct RunOptions {
  const TrainOptions& train;
  const RunHooks& hooks;
};

/// Every public call except getters is collective. `folder` and `log` are silent on ranks other than 0. `from`: the
/// checkpoint to resume from; null: a new run. The arguments outlive it.
class Run {
 public:
  Run(const RunOptions&, Config&, const RankPlace&, RunFolder& folder, const ResumePoint* from, const Log& log);

  // Errors: those of the parts of a run, naming the last saved model.
  /// Call once, before the others.
  void begin();
  // Each call continues where the previous one ended.
  /// Trains to the end of the config or as the options say, or until a stop is requested.
  TrainEnd fit(const FitOptions&);
  /// Trains for `steps` steps and does nothing else.
  TrainEnd step(int64_t steps);
  /// Evaluates without side effects on training. Empty if a stop interrupted it.
  std::map<std::string, double> evaluate_now();
  /// Waits until a checkpoint being written is complete.
  void finish_checkpoint() { checkpoints_->finish(); }
  /// Ends the run: writes the summary and the last files.
  TrainSummary finish();

  /// Trains on all of the samples, in batches.
  TrainEnd step_on(const GivenSamples&);
  std::map<std::string, double> evaluate_on(const GivenSamples&);
  /// Saves the model at a prefix, with optimizer states.
  std::vector<fs::path> save_at(const std::string& prefix);
  /// Saves a full checkpoint in a new folder in `folder`, and waits until it is complete. Returns its path.
  fs::path save_checkpoint_in(const fs::path& folder);

  // The steps after this call use these settings.
  /// None: the rate of the schedule.
  void set_learning_rate(std::optional<double> rate) { rate_ = rate; }
  /// Paths with the ranks in them.
  void set_source(const std::string&);
  void set_evaluation_source(const std::string&);
  /// Names: a layer by its first top, or an embedding.
  void freeze(const std::vector<std::string>& names, bool frozen);
  /// Loads weights and states from files, and keeps the others. Call check_files() first. Errors: those of
  /// check_model_files() on every rank. Errors of the files in load() end the run.
  void check_files(const WeightFiles&);
  void load(const WeightFiles&);

  /// Waits for queued steps. Not collective.
  TrainerState state();
  const std::string& device() const { return device_; }
  int rank() const { return comm_.rank(); }
  int64_t iteration() const { return now_.iterations; }

 private:
  /// Where training ends: at the first of these.
  struct End {
    std::optional<int64_t> iteration{}, passes{};
  };
  End end_of_config() const { return {config_.solver.max_iter, config_.solver.num_epochs}; }
  bool passed(const End&) const;
  /// Whether the current call has trained enough; whether the run has, by its config.
  bool finished() const { return now_.stopped_at || passed(end_); }
  bool complete() const { return now_.stopped_at || passed(end_of_config()); }
  /// Starts a call that trains. Collective. Returns whether a stop has already been requested.
  bool begin_call(const End&);
  TrainEnd end_call();
  /// The data to train on: the source, pass after pass, or to the end of its pass; or the given samples.
  enum class On { passes, pass, given };
  /// Trains until finished(), a stop or the end of those data, and calls after() with the learning rate after each
  /// step. Returns whether the data have ended.
  bool train(On, const std::function<void(double rate)>& after);
  std::unique_ptr<Replica> make_model();
  std::unique_ptr<StepPipeline> make_pipeline(const ReadProgress&);
  /// Waits for the last step: then the loss belongs to an intact model.
  void settle();
  void end_profile();
  /// After a stop: save_stopped_state(), once per iteration.
  bool leave_stopped();
  /// Waits for the next batch; false at the end of the data. Collective: all ranks throw the error of any rank's
  /// reader, and all stop after the same step. Detects a hung rank before the others would wait for it on the device.
  bool fetch();
  /// On the host, between steps. Errors: Error(device) when the system has refused memory since the run began, or has
  /// too little to save the model.
  void expect_memory();
  /// Logs which ranks wait for data.
  void say_who_waits(bool waits);
  /// Runs the step after `iterations` steps; returns nothing at the end of the data, or when training must stop.
  std::optional<int64_t> step(double rate);
  /// The number of steps of the run; approximate if the number of samples is.
  int64_t steps_of_run() const;
  void after_step(double rate);
  /// Collective. Whether a model that is due is saved now.
  bool may_save();
  /// Whether after_step() will wait for the step.
  bool waits_after(int64_t iteration) const;
  void evaluate();
  void note_metrics(const Evaluator::Result&);
  void report_evaluation(const Evaluator::Result&, double seconds);
  /// After an evaluation. `better`: whether it was the best so far.
  void stop_early(bool better);
  /// Records whether the last evaluation is the best so far, and returns it.
  bool note_best();
  /// Warns once why a metric that decides something is undefined.
  void warn_of_undefined_metrics();
  /// Whether it saves models unasked.
  bool saves_model() const { return config_.solver.final_snapshot && saver_.has_place(); }
  void save_final_model();
  void display(double rate);
  /// Collective, if there is such a hook: stops training if the hook returns false.
  void ask(const std::function<bool(const TrainerState&)>& hook, double rate, double mean_loss);
  TrainerState state_with(double loss, double mean_loss, double rate) const;
  std::optional<double> epoch() const;
  double next_rate() const { return rate_.value_or(scheduled_rate(schedule_, now_.iterations + 1)); }
  /// Waits for queued steps.
  double last_loss() { return trained_ ? pipeline_->finish_and_read_loss() : now_.loss; }
  /// Reports trained rows that the classic model files cannot hold.
  void report_unsaved();
  /// Since the last display, for tables with rows in host memory: the share of row reads that were on the GPU. None:
  /// there were none, or all rows are on the GPU.
  std::optional<double> share_of_reads(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Logs how many rows are in host memory, and once that rows have moved there.
  void report_host_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Adds the rows of batches that came from disk since the last display, and the seconds waited for it.
  void add_disk_figures(const std::map<std::string, std::map<std::string, int64_t>>& counts, TrainedFigures&);
  /// Logs how many rows are on disk, and once that rows have moved there.
  void report_disk_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Logs the steps skipped for fp16 overflow since the last display.
  void report_skipped();
  /// The largest signal number of any rank.
  int stop_signal();
  /// On rank 0, if there are several hosts: totals over all ranks. Collective.
  std::optional<TrainSummary::BetweenHosts> bytes_between_hosts();

  /// Every rank opens the files itself and must find the same number of samples.
  void expect_one_data_set();
  // Defined in run_not_finite.cc:
  static constexpr int64_t kMostSkipped = 100;  // consecutive steps that "on_nan": "skip" skips
  /// Throws if the loss of the last step, or of an earlier one that has stopped the model, is not a number, unless such
  /// steps are skipped. All ranks have the same loss. Call it when no steps are queued.
  void check_finite(double loss);
  /// Collective.
  [[noreturn]] void throw_diverged();
  /// Collective: runs the step again, and names the tensor, sample and record that made its loss infinite or NaN, or
  /// the tensors that its update has `spoiled`. Does not throw.
  std::string place_of_not_finite(int64_t step, bool spoiled);
  /// This rank's finding, as JSON: "order", "row" of the whole batch, "samples", "what" and "why".
  std::string report_of(const NotFinite&, const StepPipeline::Again&) const;
  /// Runs body(). After an error, saves the model if it is intact, and adds to the error its path or that of the last
  /// model saved.
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
  /// On rank 0: records that a model of this iteration is saved because the run stops or fails. Called before saving,
  /// so that a kill leaves no unrecorded model.
  void note_unasked_model();
  /// The role of this iteration's model: the result, one that a later model replaces, or not saved.
  enum class ModelOfStep { result, unasked, left_out };
  /// On rank 0, once this iteration is saved: removes earlier models that were saved because the run stopped or failed
  /// and, with `left_out`, this iteration's model, unless the config asks for them.
  void replace_unasked_models(ModelOfStep);
  /// Collective: saves a checkpoint of a run that stops. Returns whether it is complete, so that no model is needed.
  bool save_stopped_state();

  // Defined in run_trained.cc:
  /// Collective: records which losses have had a sample with nonzero weight, and returns the others.
  std::vector<CountedSamples::Loss> uncounted_losses();
  /// Collective: whether any step has had a sample with nonzero weight.
  bool has_trained();
  /// Collective: the reason if nothing has been trained; otherwise empty.
  std::string why_untrained();
  std::string why_no_step() const;
  /// Collective. Errors: Error(data) when nothing has been trained.
  void expect_trained();
  /// Collective.
  void warn_of_uncounted_losses();

  // Defined in run_follow.cc:
  /// With "follow": rank 0 starts watching for files.
  void start_following();
  /// Errors: Error(data) when the size of the file that the checkpoint was reading has changed.
  void expect_same_followed_file() const;
  /// Records the files so far, for a checkpoint.
  void note_followed();
  /// Whether rank 0 has found files, or the end of the files.
  bool follow_news() const;
  /// Collective: passes the files that rank 0 has found to every reader. `waits`: whether this rank has no batch.
  void exchange_new_files(bool waits);
  void say_waiting();

  // Defined in run_checkpoint.cc:
  /// The checkpoint that the run resumes from, if it lies in the config's checkpoint folder. Logs tables that every
  /// checkpoint saves in full although the config asks for increments.
  Checkpointer::Saved saved_checkpoint() const;
  void say_what_increments_save() const;
  /// Collective: chooses GEMM algorithms if the config asks for a search.
  void choose_algorithms();
  ReadProgress read_progress() const;
  Json data_json() const;
  /// Errors: Error(data) if evaluation data or initial models number their keys differently than the training data.
  void expect_fitting_data() const;
  void expect_one_numbering() const;
  void expect_one_key_rule() const;
  /// Restores the model and the numbers of the run from the checkpoint.
  void load_checkpoint();
  /// Collective. `finished`: whether nothing is left to do.
  void save_checkpoint(bool finished = false);
  /// The content of a checkpoint at this point. Nothing may be queued.
  Checkpointer::Content checkpoint_content(bool finished);

  const TrainOptions& options_;
  const RunHooks& hooks_;
  ReservedShare to_save_{options_.reserve};
  Config& config_;
  const Log& log_;
  Communicator& comm_;
  RunFolder& folder_;
  Runtime runtime_;
  const Json encoding_contents_;  // of the files, other than data, that the Data layer names
  BatchLayout layout_, eval_layout_;
  const ResumePoint* from_;
  bool exact_;  // its state fits the ranks of this run
  std::vector<Placement> placements_;
  std::unique_ptr<Replica> model_;
  ModelSaver saver_;
  std::shared_ptr<FileFeed> feed_;       // with "follow"
  std::unique_ptr<FileWatch> watch_;     // watches for files, on rank 0
  std::optional<double> waiting_since_;  // seconds of the run; set while rank 0 has no batch and no file has arrived
  bool said_waiting_ = false;
  std::shared_ptr<LookAheadGroup> peers_;
  std::unique_ptr<StepPipeline> pipeline_;
  HyperParameters schedule_;    // of the learning rate, in steps
  std::optional<double> rate_;  // replaces the schedule's rate
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Evaluator> given_evaluator_;  // evaluates given samples; null: none were given
  std::string device_;
  std::string algorithms_;  // of GEMMs, as text; empty without a search
  RunProgress now_;
  std::vector<SlotMatches> matches_;  // of the last evaluation
  End end_;                           // of the current call
  struct Intervals {
    int64_t display = 0, eval = 0, snapshot = 0;
  } every_;                                  // of the current call
  std::set<std::string> frozen_;             // by freeze()
  bool stopping_ = false, trained_ = false;  // trained_: since this process started
  bool called_ = false;                      // an earlier call has trained
  bool pass_ended_ = false;                  // the reader is at the end of a pass
  bool ended_ = false;                       // finish() has been called
  int64_t left_stopped_at_ = -1;             // iteration of the last leave_stopped()
  bool in_checkpoint_ = false;               // its result
  bool trained_something_ = false;           // has_trained()
  bool diverged_ = false, saved_after_error_ = false;
  int64_t host_row_bytes_ = 0;  // as last reported
  struct Reads {
    int64_t all = 0, from_gpu = 0;
  } reads_;                     // at the last display
  int64_t disk_row_bytes_ = 0;  // as last reported
  struct DiskReads {
    int64_t rows = 0, from_disk = 0;
  } disk_reads_;                                   // at the last display
  int64_t most_not_finite_ = 0;                    // consecutive steps whose loss may be NaN or infinite
  std::optional<int64_t> metrics_bytes_;           // at the end of the run, without its last line
  std::optional<ReaderPosition> left_evaluation_;  // start of an evaluation that a stop has interrupted
  std::unique_ptr<Reporter> report_;
  std::unique_ptr<Checkpointer> checkpoints_;
  std::unique_ptr<StepProfile> profile_;  // null: no profile
};

}  // namespace hctr
