// Training in the memory of this process, as far at a time as its caller says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/model.h"
#include "hctr/solver.h"

namespace hctr {

struct TrainerOptions : TrainOptions {
  /// JSON of a config. Where it is not empty, no file is read, and `config` only names it in messages and in the run
  /// folder.
  std::string config_text{};
  /// Whether there is a run folder, with metrics, summary and models. Without it models are saved at snapshot_prefix,
  /// or nowhere.
  bool run_folder = true;
};

/// How far training is.
struct TrainerState {
  int64_t iteration = 0, samples = 0;  ///< trained so far, of all ranks
  int64_t passes = 0;                  ///< over the whole source, with num_epochs
  std::optional<double> epoch{};       ///< samples / samples in the source; nothing where these are not known exactly
  double loss = 0;                     ///< of the last step, over all ranks
  double mean_loss = 0;                ///< of the samples since the last display; NaN without any
  double learning_rate = 0;            ///< of the next step; of a display that of the last one
  double samples_per_second = 0;       ///< between the last two displays; 0 before
  double seconds = 0;                  ///< in calls that train or evaluate, with those before a resume
  std::map<std::string, double> metrics{};         ///< of the last evaluation, by name
  std::map<std::string, std::string> undefined{};  ///< of those that are NaN: why
  int64_t evaluated_at = -1;                       ///< the iteration of that evaluation; -1: there was none
};

/// Why a call ended.
enum class TrainEnd {
  reached,     ///< it has trained as far as it was asked to
  pass_ended,  ///< step(): the source, or the samples given, have ended before; the next call begins the next pass
  metric,      ///< fit(): a metric's threshold or early stopping
  stopped,     ///< by a callback, or JobOptions::stop
};

/// How far fit() trains, and how often it does other things. What is left out is as the config says.
struct FitOptions {
  std::optional<int64_t> iteration{};  ///< up to this one, counted from the beginning of training
  std::optional<int64_t> passes{};     ///< up to so many over the source, counted likewise; with num_epochs alone
  std::optional<int64_t> display{}, eval_interval{}, snapshot{};  ///< in iterations; 0: never
};

/// A set of samples in memory of the caller, which must be there until the call returns.
struct SamplesView {
  int64_t samples = 0;
  std::span<const InputView> inputs{};
};

/// Files of weights and of optimizer states, as save() and other runs write them. Empty paths: as they are.
struct WeightFiles {
  std::string dense{}, dense_states{};
  std::map<std::string, std::string> tables{}, table_states{};  ///< by the names of embeddings
};

/// Trains the model of a config, which it holds with tables, optimizer states and position in the data from its
/// construction on. Runs after each other in one object are one run: fit() to iteration 10, 20 and 30 gives, bit for
/// bit, what fit() to 30 gives.
///
/// Belongs to one thread at a time, also its callbacks, which are called in a call of that thread. Any number of
/// trainers, each with a thread of its own, do not disturb each other. On several GPUs, or "gpu": [0, 1] on a CPU, it
/// has a thread for each rank. As one of several processes that MPI or TCP joins, all make the same calls in the same
/// order; callbacks and files are those of the process of rank 0, and an error ends all processes as the surroundings
/// say.
///
/// Errors of every call: Error(usage) for what does not fit, and the trainer stays as it is. Any other Error ends
/// training, after the model has been saved where that is possible: the trainer then throws it from every call.
class HCTR_API Trainer {
 public:
  /// Reads the config, and opens data, run folder and checkpoint. A config without `source` trains on samples that
  /// step() is given. Errors: Error of any kind, as those of hctr::train().
  explicit Trainer(const TrainerOptions&);
  /// Without finish() before, a run folder has no summary and no final model.
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Called at each display, and after each evaluation, of fit(); null: nobody is. Training ends where it returns
  /// false, with a whole checkpoint if the config has a "checkpoint". It may not call the trainer. What it throws ends
  /// training likewise, and leaves fit().
  using Callback = std::function<bool(const TrainerState&)>;
  void on_display(Callback);
  void on_evaluation(Callback);

  /// Trains as the program does, with displays, evaluations, snapshots and checkpoints: to the end that the config
  /// says, or as the options say, if that is not reached yet. The model may be trained past the end of the config.
  /// Errors: also Error(usage) for passes with max_iter, where batches run across the end of the source.
  TrainEnd fit(const FitOptions& = {});
  /// Trains for so many iterations and does nothing else. Without a GPU they are complete; on one the last ones may
  /// still run, and state() waits for them.
  TrainEnd step(int64_t iterations = 1);
  /// The same on samples that the caller gives, in batches of the config's batchsize, the last of which may be smaller.
  /// In whole batches, and with max_iter, they give, bit for bit, what the same samples in files give. The views are
  /// those of inputs(), read when the call returns. With several processes each gives all samples. Errors: also
  /// Error(usage) for views that do not fit, Error(data) for labels that a loss does not take and keys beyond the
  /// config's limits.
  TrainEnd step(const SamplesView&);

  /// Evaluates on eval_source, or on samples that the caller gives. Returns the metrics by name, those of
  /// "eval_metrics". Decides nothing: early stopping and thresholds belong to fit(). Errors: also Error(usage) without
  /// an eval_source.
  std::map<std::string, double> evaluate();
  std::map<std::string, double> evaluate(const SamplesView&);

  /// Waits for steps that still run.
  TrainerState state();
  /// What step() and evaluate() are given by name: labels f32 [samples, labels], the weights of samples f32 [samples,
  /// 1] if the config has some, dense values f32 [samples, columns], keys [samples, slots] or bags (InputView). As for
  /// Model, dense values are those that the first layers read, and keys those of the tables.
  std::vector<ModelTensor> inputs() const;
  std::string device() const;
  int64_t batchsize() const;

  // Of the steps from here on. A checkpoint does not keep these: who goes on from one says them again.
  /// A constant rate; nothing: that of the config's schedule. Tables with an optimizer of their own follow in
  /// proportion.
  void set_learning_rate(std::optional<double>);
  /// Other data of the config's format, from their beginning; steps counted on. Errors: as of the constructor.
  void set_source(const std::string&);
  void set_evaluation_source(const std::string&);
  /// Layers by their first top, tables by their name; their weights, rows and optimizer states stay as they are.
  /// Errors: also Error(usage) for names that are unknown, for tables with "update_type": "LazyGlobal", whose rows get
  /// the updates of left-out steps later, and to unfreeze tables that the config froze, which have no states.
  void freeze(const std::vector<std::string>& names);
  void unfreeze(const std::vector<std::string>& names);

  /// Saves the model at a prefix, as snapshots are, with the files of optimizer states. Returns them, the dense model
  /// first. Errors: also Error(io).
  std::vector<std::filesystem::path> save(const std::string& prefix);
  /// Takes weights and rows from files, and optimizer states where files for them are named; other states start anew.
  /// Tables that are named have the rows of their file alone; what is not named stays as it is, with its states, which
  /// takes a copy of it in host memory. Steps are counted on; t of Adam is that of the states, if any are named.
  /// Errors: also Error(io) and Error(data), and where the files themselves show it, the trainer stays as it is.
  void load(const WeightFiles&);
  /// Saves all that going on takes, in a new folder in this one, and returns it: TrainOptions::resume takes it. Errors:
  /// also Error(io).
  std::filesystem::path checkpoint(const std::filesystem::path& folder);

  /// Ends the run as the program does: after a stop as it is, else with an evaluation if there was none of the last
  /// iteration; then final model, checkpoint and summary. Only state(), evaluate() and save() may follow.
  TrainSummary finish();

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
