// Training inside another program, as many steps at a time as its caller says.
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
  /// JSON of a config. If not empty, no file is read, and `config` is only its name in messages and in the run folder.
  std::string config_text{};
  /// Whether there is a run folder, with metrics, summary and models. Without it models are saved at snapshot_prefix,
  /// or not at all.
  bool run_folder = true;
};

/// The progress of training.
struct TrainerState {
  int64_t iteration = 0, samples = 0;       ///< trained so far, over all ranks
  int64_t passes = 0;                       ///< over the whole source, with num_epochs
  std::optional<double> epoch{};            ///< samples / samples in the source; none if these are not known exactly
  double loss = 0;                          ///< of the last step, over all ranks
  double mean_loss = 0;                     ///< over the samples since the last display; NaN without any
  double learning_rate = 0;                 ///< of the next step; in a display, of the last one
  double samples_per_second = 0;            ///< between the last two displays; 0 before
  double seconds = 0;                       ///< in calls that train or evaluate, including those before a resume
  std::map<std::string, double> metrics{};  ///< of the last evaluation, by name
  std::map<std::string, std::string> undefined{};  ///< for NaN metrics: the reason
  int64_t evaluated_at = -1;                       ///< iteration of that evaluation; -1: none
};

/// The reason why a call ended.
enum class TrainEnd {
  reached,     ///< it has trained as far as requested
  pass_ended,  ///< step(): the source, or the given samples, ended first; the next call begins the next pass
  metric,      ///< fit(): a metric's threshold or early stopping
  stopped,     ///< by a callback, or JobOptions::stop
};

/// How far fit() trains, and the intervals of its other work. Defaults: the config's.
struct FitOptions {
  std::optional<int64_t> iteration{};  ///< trains up to this one, counted from the beginning of training
  /// trains up to this many passes over the source, counted likewise; only with num_epochs
  std::optional<int64_t> passes{};
  std::optional<int64_t> display{}, eval_interval{}, snapshot{};  ///< in iterations; 0: never
};

/// Samples in the caller's memory, which must stay valid until the call returns.
struct SamplesView {
  int64_t samples = 0;
  std::span<const InputView> inputs{};
};

/// Files of weights and of optimizer states, as save() and other runs write them. Empty paths: unchanged.
struct WeightFiles {
  std::string dense{}, dense_states{};
  std::map<std::string, std::string> tables{}, table_states{};  ///< by the names of embeddings
};

/// Trains the model of a config. Construction creates the model, tables, optimizer states and position in the data.
/// Consecutive calls on one object are one run: fit() to iteration 10, 20 and 30 gives, bit for bit, the result of
/// fit() to 30.
///
/// Belongs to one thread at a time; callbacks run within a call of that thread. Any number of trainers may coexist,
/// each
/// in its own thread. On several GPUs, or "gpu": [0, 1] on a CPU, it has a thread for each rank. If several processes
/// joined by MPI or TCP train together, all make the same calls in the same order; only rank 0's process calls
/// callbacks and writes files, and an error ends all processes as the surroundings say.
///
/// Errors of every call: Error(usage) for arguments that do not fit; then the trainer is unchanged. Any other Error
/// ends
/// training, after saving the model if possible: the trainer then throws it from every call.
class HCTR_API Trainer {
 public:
  /// Reads the config, and opens data, run folder and checkpoint. A config without `source` trains on samples passed to
  /// step(). Errors: Error of any kind, as hctr::train().
  explicit Trainer(const TrainerOptions&);
  /// Without finish(), the run folder has no summary and no final model.
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Called at each display, and after each evaluation, of fit(); may be null. Returning false ends training, with a
  /// full checkpoint if the config has a "checkpoint". It must not call the trainer. An exception ends training
  /// likewise, and leaves fit().
  using Callback = std::function<bool(const TrainerState&)>;
  void on_display(Callback);
  void on_evaluation(Callback);

  /// Trains as the program does, with displays, evaluations, snapshots and checkpoints: to the end that the config or
  /// the options say, unless it is already reached. The model may be trained past the end of the config. Errors: also
  /// Error(usage) for passes with max_iter, where batches span the end of the source.
  TrainEnd fit(const FitOptions& = {});
  /// Trains for `iterations` iterations and does nothing else. Without a GPU they are complete on return; on a GPU the
  /// last ones may still run, and state() waits for them.
  TrainEnd step(int64_t iterations = 1);
  /// The same on the caller's samples, in batches of the config's batchsize, the last of which may be smaller. In whole
  /// batches, and with max_iter, the result equals, bit for bit, training on the same samples in files. The views are
  /// those of inputs(), and have been read when the call returns. With several processes, each passes all samples.
  /// Errors: also Error(usage) for views that do not fit, Error(data) for labels that a loss does not accept and keys
  /// beyond the config's limits.
  TrainEnd step(const SamplesView&);

  /// Evaluates on eval_source, or on the caller's samples. Returns the metrics by name, those of "eval_metrics". Has no
  /// effect on training: early stopping and thresholds belong to fit(). Errors: also Error(usage) without an
  /// eval_source.
  std::map<std::string, double> evaluate();
  std::map<std::string, double> evaluate(const SamplesView&);

  /// Waits for running steps.
  TrainerState state();
  /// The inputs of step() and evaluate(), by name: labels f32 [samples, labels], weights of samples f32 [samples, 1] if
  /// the config has any, dense values f32 [samples, columns], keys [samples, slots] or bags (InputView). As for Model,
  /// dense values are those that the first layers read, and keys those of the tables.
  std::vector<ModelTensor> inputs() const;
  std::string device() const;
  int64_t batchsize() const;

  // The following apply to later steps. A checkpoint does not store them: set them again after a resume.
  /// A constant rate; none: the config's schedule. Tables with a separate optimizer scale in proportion.
  void set_learning_rate(std::optional<double>);
  /// Switches to other data in the config's format, from their beginning; the step count continues. Errors: as the
  /// constructor.
  void set_source(const std::string&);
  void set_evaluation_source(const std::string&);
  /// Names: layers by their first top, tables by their name. Freezing keeps their weights, rows and optimizer states
  /// unchanged. Errors: also Error(usage) for unknown names; for tables with "update_type": "LazyGlobal", whose rows
  /// would later catch up on the frozen steps; for unfreezing a table that the config froze: it has no states.
  void freeze(const std::vector<std::string>& names);
  void unfreeze(const std::vector<std::string>& names);

  /// Saves the model at a prefix, like a snapshot, with optimizer states. Returns the files, the dense model first.
  /// Errors: also Error(io).
  std::vector<std::filesystem::path> save(const std::string& prefix);
  /// Loads weights and rows from files, and optimizer states if files for them are named; other states are reset. A
  /// named table then has only the rows of its file. Parts that are not named keep their weights and states, which
  /// takes a copy of them in host memory. The step count continues; Adam's t comes from the loaded states, if any.
  /// Errors: also Error(io) and Error(data); if the files themselves are wrong, the trainer is unchanged.
  void load(const WeightFiles&);
  /// Saves a checkpoint in a new folder inside this one, and returns its path, for TrainOptions::resume. Errors: also
  /// Error(io).
  std::filesystem::path checkpoint(const std::filesystem::path& folder);

  /// Ends the run as the program does. After a stop, keeps the present state; otherwise evaluates if the last iteration
  /// was not evaluated. Then saves final model, checkpoint and summary. Only state(), evaluate() and save() may follow.
  TrainSummary finish();

 private:
  struct HCTR_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace hctr
