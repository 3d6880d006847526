// A training run on one rank: steps, displays, evaluations, snapshots and checkpoints in their order, as far at a time
// as its caller says.
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

/// Where a rank trains.
struct RankPlace {
  Communicator& comm;
  Device device;
  int threads;                            ///< for operators on a CPU
  std::shared_ptr<LookAheadGroup> peers;  ///< of the ranks of this process
};

/// Who hears of displays and evaluations. Every rank has the same ones; that of rank 0 calls.
struct RunHooks {
  /// Each returns whether training goes on. Null: nobody hears of it.
  std::function<bool(const TrainerState&)> displayed{}, evaluated{};
};

/// What the options of a trainer say to each of its runs.
struct RunOptions {
  const TrainOptions& train;
  const RunHooks& hooks;
};

/// Every public call but the getters is collective. `folder` and `log` are silent on ranks other than 0. `from`: the
/// checkpoint that the run goes on from; null: it starts anew. The arguments outlive it.
class Run {
 public:
  Run(const RunOptions&, Config&, const RankPlace&, RunFolder& folder, const ResumePoint* from, const Log& log);

  // Errors: those of the parts, naming the last model saved.
  /// Once, before the others.
  void begin();
  // Each goes on where the one before ended.
  /// Trains to the end of the config or as the options say, or until a stop is requested.
  TrainEnd fit(const FitOptions&);
  /// Trains for so many steps and does nothing else.
  TrainEnd step(int64_t steps);
  /// Evaluates, and decides nothing by it. Empty where a stop has ended it.
  std::map<std::string, double> evaluate_now();
  /// Waits until a checkpoint under way is complete.
  void finish_checkpoint() { checkpoints_->finish(); }
  /// Ends the run: summary and last files.
  TrainSummary finish();

  /// Trains on all of the samples, in batches.
  TrainEnd step_on(const GivenSamples&);
  std::map<std::string, double> evaluate_on(const GivenSamples&);
  /// Saves the model at a prefix, with optimizer states.
  std::vector<fs::path> save_at(const std::string& prefix);
  /// Saves a whole checkpoint in a folder of its own in `folder`, and waits until it is complete. Returns it.
  fs::path save_checkpoint_in(const fs::path& folder);

  // Of the steps that follow.
  /// Nothing: the rate of the schedule.
  void set_learning_rate(std::optional<double> rate) { rate_ = rate; }
  /// Paths with the ranks in them.
  void set_source(const std::string&);
  void set_evaluation_source(const std::string&);
  /// A layer by its first top, or an embedding.
  void freeze(const std::vector<std::string>& names, bool frozen);
  /// Takes weights and states from files, and keeps the others. check_files() comes first. Errors: those of
  /// check_model_files() on every rank; of load() those of the files, which end the run.
  void check_files(const WeightFiles&);
  void load(const WeightFiles&);

  /// Waits for queued steps. Not collective.
  TrainerState state();
  const std::string& device() const { return device_; }
  int rank() const { return comm_.rank(); }
  int64_t iteration() const { return now_.iterations; }

 private:
  /// Where training ends: what comes first.
  struct End {
    std::optional<int64_t> iteration{}, passes{};
  };
  End end_of_config() const { return {config_.solver.max_iter, config_.solver.num_epochs}; }
  bool passed(const End&) const;
  /// Whether as much is trained as the call under way wants; as the config wants.
  bool finished() const { return now_.stopped_at || passed(end_); }
  bool complete() const { return now_.stopped_at || passed(end_of_config()); }
  /// At the begin of a call that trains. Collective. Whether a stop is requested before it.
  bool begin_call(const End&);
  TrainEnd end_call();
  /// What is trained on: the source, pass after pass, or to the end of its pass; or the samples given.
  enum class On { passes, pass, given };
  /// Trains until finished(), a stop or the end of those data, and calls after() with its rate behind each step.
  /// Returns whether the data have ended.
  bool train(On, const std::function<void(double rate)>& after);
  std::unique_ptr<Replica> make_model();
  std::unique_ptr<StepPipeline> make_pipeline(const ReadProgress&);
  /// Waits for the last step: the loss is that of a model which is intact.
  void settle();
  void end_profile();
  /// After a stop: save_stopped_state(), once for an iteration.
  bool leave_stopped();
  /// Waits for the next batch; false at the end of the data. Collective: all ranks throw the error of any rank's
  /// reader, and all stop after the same step. It also finds a rank that hangs before the others wait for it on the
  /// device.
  bool fetch();
  /// Host, between steps. Errors: Error(device) when the system has refused memory since the run began, or has none for
  /// what saving the model takes.
  void expect_memory();
  /// Says which ranks wait for their data.
  void say_who_waits(bool waits);
  /// The step after `iterations` steps; nothing at the end of the data, or when training must stop.
  std::optional<int64_t> step(double rate);
  /// All steps of the run; about, where the number of samples is an estimate.
  int64_t steps_of_run() const;
  void after_step(double rate);
  /// Collective. Whether a model that is due is saved.
  bool may_save();
  /// Whether after_step() will wait for the step.
  bool waits_after(int64_t iteration) const;
  void evaluate();
  void note_metrics(const Evaluator::Result&);
  void report_evaluation(const Evaluator::Result&, double seconds);
  /// After an evaluation. `better`: than all before.
  void stop_early(bool better);
  /// Notes whether the last evaluation is the best so far, and returns it.
  bool note_best();
  /// Says once why a metric that decides something is not defined.
  void warn_of_undefined_metrics();
  /// Whether it saves models by itself.
  bool saves_model() const { return config_.solver.final_snapshot && saver_.has_place(); }
  void save_final_model();
  void display(double rate);
  /// Collective, where there is such a hook: whether it wants training to go on, else training stops.
  void ask(const std::function<bool(const TrainerState&)>& hook, double rate, double mean_loss);
  TrainerState state_with(double loss, double mean_loss, double rate) const;
  std::optional<double> epoch() const;
  double next_rate() const { return rate_.value_or(scheduled_rate(schedule_, now_.iterations + 1)); }
  /// Waits for queued steps.
  double last_loss() { return trained_ ? pipeline_->finish_and_read_loss() : now_.loss; }
  /// Reports trained rows that the classic model files cannot hold.
  void report_unsaved();
  /// Of the reads of rows since the last display, in tables with rows in host memory: how many were on the GPU. None:
  /// there were none, or all rows are on the GPU.
  std::optional<double> share_of_reads(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Says how many rows are in host memory, and once that it has begun.
  void report_host_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Of the rows of batches since the last display, those that came from the disk; and the seconds waited for it.
  void add_disk_figures(const std::map<std::string, std::map<std::string, int64_t>>& counts, TrainedFigures&);
  /// Says how many rows are on the disk, and once that it has begun.
  void report_disk_rows(const std::map<std::string, std::map<std::string, int64_t>>& counts);
  /// Reports the steps skipped for fp16 overflow since the last display.
  void report_skipped();
  /// The largest of any rank's.
  int stop_signal();
  /// On several hosts, on rank 0: of all ranks. Collective.
  std::optional<TrainSummary::BetweenHosts> bytes_between_hosts();

  /// Every rank opens the files itself and must find the same number of samples.
  void expect_one_data_set();
  // In run_not_finite.cc:
  static constexpr int64_t kMostSkipped = 100;  // steps in a row that "on_nan": "skip" leaves out
  /// Throws if the loss of the last step is not a number, unless such steps are skipped, or of an earlier one that has
  /// stopped the model. All ranks have one loss. Call when queued steps are waited for.
  void check_finite(double loss);
  /// Collective.
  [[noreturn]] void throw_diverged();
  /// Collective: runs the step again, and says which tensor, sample and record made its loss so, or what its update has
  /// `spoiled`. Throws nothing.
  std::string place_of_not_finite(int64_t step, bool spoiled);
  /// What this rank has found, as JSON: "order", "row" of the whole batch, "samples", "what" and "why".
  std::string report_of(const NotFinite&, const StepPipeline::Again&) const;
  /// Runs body(). After an error the model is saved where it is intact, and the error names its path or that of the
  /// last model saved.
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

  // In run_unasked.cc:
  /// On rank 0: notes that a model of this iteration is saved because the run stops or fails. Called before it is
  /// saved, so that a kill leaves none that is not known.
  void note_unasked_model();
  /// The model of this iteration: the result, one that a later model replaces, or none.
  enum class ModelOfStep { result, unasked, left_out };
  /// On rank 0, once this iteration is saved: removes earlier models that were saved because the run stopped or failed,
  /// and with `left_out` that of this iteration, unless the config asks for them.
  void replace_unasked_models(ModelOfStep);
  /// Collective: saves a checkpoint of a run that stops. Returns whether it is complete, so that no model is needed.
  bool save_stopped_state();

  // In run_trained.cc:
  /// Collective: notes which losses have had a sample that counts, and returns the others.
  std::vector<CountedSamples::Loss> uncounted_losses();
  /// Collective: whether a step has been made that some sample counted in.
  bool has_trained();
  /// Collective: why not; empty if it has.
  std::string why_untrained();
  std::string why_no_step() const;
  /// Collective. Errors: Error(data) when nothing has been trained.
  void expect_trained();
  /// Collective.
  void warn_of_uncounted_losses();

  // In run_follow.cc:
  /// With "follow": rank 0 begins to look for files.
  void start_following();
  /// Errors: Error(data) when the file in which the checkpoint was has another size.
  void expect_same_followed_file() const;
  /// For a checkpoint: the files so far.
  void note_followed();
  /// Whether rank 0 has found files, or that there are no more.
  bool follow_news() const;
  /// Collective: gives every reader the files that rank 0 has found. `waits`: whether this rank has no batch.
  void exchange_new_files(bool waits);
  void say_waiting();

  // In run_checkpoint.cc:
  /// Says which tables are whole in every checkpoint, though the config asks for increments.
  /// The checkpoint that the run goes on from, where it lies in the folder of those to come.
  Checkpointer::Saved saved_checkpoint() const;
  void say_what_increments_save() const;
  /// Collective: chooses the algorithms of matrix products if the config asks for a search.
  void choose_algorithms();
  ReadProgress read_progress() const;
  Json data_json() const;
  /// Errors: Error(data) for evaluation data, or models to start from, of another numbering than the training data.
  void expect_fitting_data() const;
  void expect_one_numbering() const;
  void expect_one_key_rule() const;
  /// Takes the model and the numbers of the run from the checkpoint.
  void load_checkpoint();
  /// Collective. `finished`: whether nothing is left to do.
  void save_checkpoint(bool finished = false);
  /// What a checkpoint of now has. Nothing may be queued.
  Checkpointer::Content checkpoint_content(bool finished);

  const TrainOptions& options_;
  const RunHooks& hooks_;
  ReservedShare to_save_{options_.reserve};
  Config& config_;
  const Log& log_;
  Communicator& comm_;
  RunFolder& folder_;
  Runtime runtime_;
  const Json encoding_contents_;  // of the files that the Data layer names besides data
  BatchLayout layout_, eval_layout_;
  const ResumePoint* from_;
  bool exact_;  // the state in it fits the ranks of this run
  std::vector<Placement> placements_;
  std::unique_ptr<Replica> model_;
  ModelSaver saver_;
  std::shared_ptr<FileFeed> feed_;       // with "follow"
  std::unique_ptr<FileWatch> watch_;     // the same, on rank 0
  std::optional<double> waiting_since_;  // rank 0 has no batch, and no file has come; in seconds of the run
  bool said_waiting_ = false;
  std::shared_ptr<LookAheadGroup> peers_;
  std::unique_ptr<StepPipeline> pipeline_;
  HyperParameters schedule_;    // of the learning rate, in steps
  std::optional<double> rate_;  // in place of the schedule's
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Evaluator> given_evaluator_;  // of samples that are given; none: none were
  std::string device_;
  std::string algorithms_;  // of matrix products, as text; empty without a search
  RunProgress now_;
  std::vector<SlotMatches> matches_;  // of the last evaluation
  End end_;                           // of the call under way
  struct Intervals {
    int64_t display = 0, eval = 0, snapshot = 0;
  } every_;                                  // of the call under way
  std::set<std::string> frozen_;             // by freeze()
  bool stopping_ = false, trained_ = false;  // trained_: since this process began
  bool called_ = false;                      // a call has trained before
  bool pass_ended_ = false;                  // the reader is at the end of a pass
  bool ended_ = false;                       // finish() has been called
  int64_t left_stopped_at_ = -1;             // the iteration of leave_stopped()
  bool in_checkpoint_ = false;               // what that has returned
  bool trained_something_ = false;           // has_trained()
  bool diverged_ = false, saved_after_error_ = false;
  int64_t host_row_bytes_ = 0;  // as reported last
  struct Reads {
    int64_t all = 0, from_gpu = 0;
  } reads_;                     // at the last display
  int64_t disk_row_bytes_ = 0;  // as reported last
  struct DiskReads {
    int64_t rows = 0, from_disk = 0;
  } disk_reads_;                                   // at the last display
  int64_t most_not_finite_ = 0;                    // steps in a row whose loss may be NaN or infinite
  std::optional<int64_t> metrics_bytes_;           // at the end, before the last line
  std::optional<ReaderPosition> left_evaluation_;  // where an evaluation began that a stop has cut short
  std::unique_ptr<Reporter> report_;
  std::unique_ptr<Checkpointer> checkpoints_;
  std::unique_ptr<StepProfile> profile_;  // none: nothing is measured
};

}  // namespace hctr
