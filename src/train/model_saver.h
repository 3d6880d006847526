// Decides where and when to save the model of a run. The path is snapshot_prefix. If the prefix is not set or saving
// fails, the model is saved in the run folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "core/base/log.h"
#include "infer/models_at_prefix.h"
#include "net/model/model_delta.h"
#include "net/model/replica.h"
#include "train/delta_publisher.h"

namespace hctr {

/// Call before the run's folder is created. Errors: Error(config) if a model of this run would overwrite the only copy
/// of another run's model.
void expect_models_stay(const Config&, const OwnRun&, const Log&);
/// Call before a run. Creates the folder of the prefix, removes unfinished files of killed processes, and tests that
/// the folder is writable. Errors: Error(io); Error(config) if a snapshot would overwrite a file that training starts
/// from.
void prepare_snapshots(const Config&, const std::filesystem::path& run_folder, const Log&);

/// Each rank has one ModelSaver. Calls are collective; rank 0 writes the files.
class ModelSaver {
 public:
  /// `run_folder`: used on rank 0 only.
  ModelSaver(const Config&, Communicator&, Replica&, const std::filesystem::path& run_folder, const Log&);

  /// Waits for the writing thread.
  ~ModelSaver() { finish_delta(); }
  ModelSaver(const ModelSaver&) = delete;
  ModelSaver& operator=(const ModelSaver&) = delete;

  struct Saved {
    int64_t iteration;
    std::vector<std::filesystem::path> files;
  };
  /// On rank 0, sets the facts about the run that manifests record.
  void set_origin(ModelOrigin origin) { origin_ = std::move(origin); }
  /// Collective. If the config asks for it, starts to publish deltas and the full models that the deltas build on.
  /// `iteration`: the iteration of the current model. Errors: those of DeltaPublisher.
  void start_publishing(int64_t iteration);
  /// Call at the end. Waits for the broker as long as the config says. If the run was stopped, waits two seconds at
  /// most. Not collective.
  void finish_publishing(bool stopped);
  /// Replaces the model. Later deltas do not build on models before this call.
  void set_model(Replica& model) {
    finish_delta();
    model_ = &model;
    delta_base_.reset();
    last_.reset();
  }
  /// Allows overwriting models of other runs, because they belong to an earlier attempt at this run.
  void replace_others() { replaces_others_ = true; }
  /// For a resumed run, sets its last saved model.
  void go_on(Saved saved) { last_ = std::move(saved); }
  /// Whether models can be saved. Requires a run folder or a snapshot_prefix.
  bool has_place() const { return !prefix_.empty(); }
  /// The last saved full model.
  const std::optional<Saved>& last() const { return last_; }

  /// Saves the model, except if last() already has this iteration. Errors: Error(io) and other errors of
  /// Replica::save().
  const Saved& save(int64_t iteration, int data_key_bytes);
  /// Saves the model with optimizer states at another prefix; last() is unchanged. Errors: those of Replica::save().
  std::vector<std::filesystem::path> save_copy(const std::string& prefix, int64_t iteration, int data_key_bytes) const {
    return model_->save(prefix, iteration, data_key_bytes, origin_, true);
  }
  /// Like save(), for use during training. If the file system fails, logs a warning and returns false.
  bool snapshot(int64_t iteration, int data_key_bytes);
  /// Saves the changes since the last snapshot or delta to a separate folder; a thread writes the rows. If no saved
  /// model exists to build on, saves a snapshot. If the file system fails, logs a warning.
  void save_delta(int64_t iteration, int data_key_bytes);
  /// Logs the delta once it is written. Call after each step. Not collective.
  void poll_delta();
  /// Waits for the delta in progress. Not collective.
  void finish_delta();
  /// Takes a snapshot of a model that is better than all earlier models. Then removes the previous best model, except
  /// if that is also a regular snapshot or the base of the next delta.
  bool save_best(int64_t iteration, int data_key_bytes);
  /// The best model, if its files exist.
  const std::optional<Saved>& best() const { return best_; }
  /// On rank 0, removes the model that this run saved at an iteration, and the final_* links to its files in the run
  /// folder. `asked_for`: the config asked for the model, so removes only the links.
  void remove(int64_t iteration, bool asked_for) const;
  /// For a resumed run, sets its best saved model.
  void go_on_with_best(Saved saved) { best_ = std::move(saved); }
  /// Call after an error in the step after `iteration`. Saves the model if it is intact on all ranks; uses the run
  /// folder if snapshot_prefix fails. Returns a sentence with the path of the model. If saving failed, the sentence has
  /// the reason and the path of last().
  std::string save_after_error(const Error&, int64_t iteration, int data_key_bytes);
  /// Describes last(): "the last model saved is 'out/_dense_20.model'", or that no model has been saved.
  std::string describe_last() const;

  /// On rank 0, hard-links the files of a model into a folder as final_<name>, or copies them if the file systems
  /// differ. A failure only logs a warning, because the model itself is saved.
  void link_into(const std::filesystem::path& folder, const Saved&) const;

 private:
  /// Makes the next delta contain the changes after this call.
  void start_deltas(int64_t iteration);
  const Saved& save_at(const std::string& prefix, int64_t iteration, int data_key_bytes);
  /// On rank 0: the reason why files at the prefix must not be overwritten; empty if overwriting is permitted.
  std::string why_kept(int64_t iteration) const;

  const Config& config_;
  Communicator& comm_;
  Replica* model_;
  std::string prefix_;      // snapshot_prefix_of(), on every rank
  std::string run_prefix_;  // prefix in the run folder, used if snapshot_prefix fails; empty: none
  bool replaces_others_ = false;
  const Log& log_;
  ModelOrigin origin_;
  std::optional<Saved> last_, best_;
  struct DeltaThread {
    std::unique_ptr<PendingDelta> delta;
    std::atomic<bool> done = false;
    std::string failure{};
    std::thread thread{};
  };
  std::unique_ptr<DeltaThread> writing_;       // on rank 0: the delta in progress
  std::unique_ptr<DeltaPublisher> publisher_;  // on rank 0: sends deltas to Kafka; null if deltas are not published
  // on rank 0: the iteration of the saved model or delta that the next delta builds on
  std::optional<int64_t> delta_base_;
  std::optional<int64_t> failed_at_;  // the iteration of the last error at snapshot_prefix
};

}  // namespace hctr
