// Training inside another program, which decides how many steps each call runs.
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
  /// The config as JSON text. If not empty, no file is read: `config` is then only a name, used in messages and in the
  /// run folder.
  std::string config_text{};
  /// Whether to write a run folder with metrics, summary and models. If false, models are saved at snapshot_prefix, or
  /// not at all without a snapshot_prefix.
  bool run_folder = true;
};

/// The progress of training.
struct TrainerState {
  int64_t iteration = 0, samples = 0;  ///< `samples`: total of all ranks
  int64_t passes = 0;                  ///< completed passes over the source, with num_epochs
  /// `samples` divided by the source's number of samples; none if that number is not known exactly
  std::optional<double> epoch{};
  double loss = 0;           ///< loss of the last step, over all ranks
  double mean_loss = 0;      ///< mean loss of the samples since the last display; NaN without samples
  double learning_rate = 0;  ///< rate of the next step; in a display callback, of the last step
  /// mean speed between the last two displays, or from the start to the first display; 0 before the first display
  double samples_per_second = 0;
  double seconds = 0;                       ///< time in calls that train or evaluate, including calls before a resume
  std::map<std::string, double> metrics{};  ///< metrics of the last evaluation, by name
  std::map<std::string, std::string> undefined{};  ///< the reason for each NaN metric
  int64_t evaluated_at = -1;                       ///< iteration of the last evaluation; -1: none
};

/// The reason why a call ended.
enum class TrainEnd {
  reached,     ///< the requested iteration or pass is reached
  pass_ended,  ///< step(): the data ended before the requested iterations; the next call begins the next pass
  metric,      ///< fit(): a metric reached its threshold, or early stopping ended training
  stopped,     ///< a callback or JobOptions::stop stopped the call
};

/// How far fit() trains, and the intervals of displays, evaluations and snapshots. Defaults: the config's values.
struct FitOptions {
  std::optional<int64_t> iteration{};  ///< trains up to this iteration, counted from the start of training
  /// Trains up to this number of passes over the source, counted from the start of training. Requires num_epochs.
  std::optional<int64_t> passes{};
  /// intervals in iterations; 0: never; none: the config's values
  std::optional<int64_t> display{}, eval_interval{}, snapshot{};
};

/// Samples in the caller's memory, which must stay valid until the call returns.
struct SamplesView {
  int64_t samples = 0;
  std::span<const InputView> inputs{};
};

/// Files of weights and of optimizer states, in the format written by save() and by training runs. Without a path, no
/// file is loaded for that part (Trainer::load()).
struct WeightFiles {
  std::string dense{}, dense_states{};
  std::map<std::string, std::string> tables{}, table_states{};  ///< by embedding name
};

/// Trains the model of a config. The constructor creates the model, tables, optimizer states and position in the data.
/// Consecutive calls on one object are one run: fit() to iterations 10, 20 and 30 gives, bit for bit, the result of
/// fit() to 30.
///
/// Used by one thread at a time; callbacks run within a call of that thread. Any number of trainers may coexist, each
/// in its own thread. On several GPUs, or with several ranks on a CPU ("gpu": [0, 1]), a trainer has one thread per
/// rank. If several processes train together (MPI or TCP), all processes make the same calls in the same order. Only
/// rank 0's process calls callbacks and writes files, and an error ends all processes (Surroundings::end_process).
///
/// Errors of every call: Error(usage) for invalid arguments, which leaves the trainer unchanged. Any other Error ends
/// training, after saving the model if possible; every later call throws the same Error.
class HCTR_API Trainer {
 public:
  /// Reads the config, and opens data, run folder and checkpoint. A config without `source` trains on samples passed to
  /// step(). Errors: those of hctr::train().
  explicit Trainer(const TrainerOptions&);
  /// Without finish(), the run folder has no summary and no final model.
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// A callback of fit(), called at each display or after each evaluation; may be null. Returning false ends training,
  /// with a full checkpoint if the config has a "checkpoint". A callback must not call the trainer. An exception of a
  /// callback also ends training, and propagates from fit().
  using Callback = std::function<bool(const TrainerState&)>;
  void on_display(Callback);
  void on_evaluation(Callback);

  /// Trains like the program, with displays, evaluations, snapshots and checkpoints, to the end given by the config or
  /// the options. Returns immediately if that end is already reached. Options may train past the end of the config.
  /// Errors: also Error(usage) for `passes` with max_iter, because batches then span the end of the source.
  TrainEnd fit(const FitOptions& = {});
  /// Trains for `iterations` iterations, without displays, evaluations, snapshots or checkpoints. On a CPU the
  /// iterations are complete on return. On a GPU the last ones may still run, and state() waits for them.
  TrainEnd step(int64_t iterations = 1);
  /// Trains on the caller's samples, in batches of the config's batchsize; the last batch may be smaller. With whole
  /// batches and max_iter, the result equals training on the same samples in files, bit for bit. inputs() describes the
  /// expected views. Their memory is no longer needed when the call returns. With several processes, each process
  /// passes all samples. Errors: also Error(usage) for invalid views; Error(data) for labels that a loss does not
  /// accept, and for keys beyond the config's limits.
  TrainEnd step(const SamplesView&);

  /// Evaluates on eval_source, or on the caller's samples. Returns the metrics of "eval_metrics" by name. Does not
  /// affect training, because early stopping and thresholds belong to fit(). Errors: also Error(usage) without an
  /// eval_source.
  std::map<std::string, double> evaluate();
  std::map<std::string, double> evaluate(const SamplesView&);

  /// Waits for running steps, and returns the progress.
  TrainerState state();
  /// The inputs of step() and evaluate(), by name: labels f32 [samples, labels], sample weights f32 [samples, 1] if the
  /// config has any, dense values f32 [samples, columns], keys [samples, slots] or bags (InputView). As for Model, the
  /// caller passes dense values after the transforms, and table keys: texts hashed, and slot offsets added.
  std::vector<ModelTensor> inputs() const;
  std::string device() const;
  int64_t batchsize() const;

  // The settings below apply to later steps. Checkpoints do not store these settings: set them again after a resume.

  /// Sets a constant rate; none: the config's schedule. Rates of tables with a separate optimizer scale in proportion.
  void set_learning_rate(std::optional<double>);
  /// Switches to other data in the config's format, starting at their beginning; the step count continues. Errors:
  /// those of the constructor.
  void set_source(const std::string&);
  void set_evaluation_source(const std::string&);
  /// Freezes or unfreezes layers, named by their first top, and tables. Frozen weights, rows and optimizer states do
  /// not change. Errors: also Error(usage) for unknown names; for tables with "update_type": "LazyGlobal", whose rows
  /// would later catch up on the frozen steps; for unfreezing a table that the config froze, because such a table has
  /// no optimizer states.
  void freeze(const std::vector<std::string>& names);
  void unfreeze(const std::vector<std::string>& names);

  /// Saves the model at a prefix, like a snapshot, with optimizer states. Returns the paths of the files; the dense
  /// model is the first. Errors: also Error(io).
  std::vector<std::filesystem::path> save(const std::string& prefix);
  /// Loads weights and rows from files, and optimizer states if their files are named; other states of a loaded part
  /// are reset. A loaded table has exactly the rows of its file. Parts without files keep their weights and states,
  /// which needs a temporary copy of them in host memory. The step count continues; Adam's t comes from the loaded
  /// states, if any. Errors: also Error(io) and Error(data); if the files themselves are wrong, the trainer is
  /// unchanged.
  void load(const WeightFiles&);
  /// Saves a checkpoint in a new folder inside `folder`, and returns its path for TrainOptions::resume. Errors: also
  /// Error(io).
  std::filesystem::path checkpoint(const std::filesystem::path& folder);

  /// Ends the run, and saves the final model, the checkpoint and the summary. Before that, it evaluates the model,
  /// unless the run was stopped early or the last iteration has been evaluated. Only state(), evaluate() and save() may
  /// follow.
  TrainSummary finish();

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
