// Where and when the model of a run is saved: at snapshot_prefix, or in the run folder where there is none or it fails.
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

/// Before a run has its folder. Errors: Error(config) if a model that it saves would replace the only copy of a model
/// of another run.
void expect_models_stay(const Config&, const OwnRun&, const Log&);
/// Before a run: creates the folder of the prefix, removes what processes that were killed left there, and writes a
/// file to see that it can be written. Errors: Error(io); Error(config) if a snapshot would replace a file that
/// training starts from.
void prepare_snapshots(const Config&, const std::filesystem::path& run_folder, const Log&);

/// One per rank. Calls are collective; rank 0 writes.
class ModelSaver {
 public:
  /// `run_folder`: on rank 0; ignored on the others.
  ModelSaver(const Config&, Communicator&, Replica&, const std::filesystem::path& run_folder, const Log&);

  /// Waits for the thread.
  ~ModelSaver() { finish_delta(); }
  ModelSaver(const ModelSaver&) = delete;
  ModelSaver& operator=(const ModelSaver&) = delete;

  struct Saved {
    int64_t iteration;
    std::vector<std::filesystem::path> files;
  };
  /// What manifests say of the run; of rank 0.
  void set_origin(ModelOrigin origin) { origin_ = std::move(origin); }
  /// Collective. Where the config says so, deltas and the models that they build on are published from now on.
  /// `iteration`: of the model there is. Errors: those of DeltaPublisher.
  void start_publishing(int64_t iteration);
  /// Not collective. At the end: waits for the broker as long as the config says; a run that is stopped, for a moment.
  void finish_publishing(bool stopped);
  /// The model is another one from now on. A delta builds on none before.
  void set_model(Replica& model) {
    finish_delta();
    model_ = &model;
    delta_base_.reset();
    last_.reset();
  }
  /// Models of other runs may be replaced: those of an earlier attempt at this one.
  void replace_others() { replaces_others_ = true; }
  /// For a run that goes on: the last model that it has saved.
  void go_on(Saved saved) { last_ = std::move(saved); }
  /// Whether there is a place for models: a run folder or a snapshot_prefix. Without it none of them is saved.
  bool has_place() const { return !prefix_.empty(); }
  /// The last model that was saved whole.
  const std::optional<Saved>& last() const { return last_; }

  /// Saves the model, unless last() is of this iteration. Errors: Error(io) and others of Replica::save().
  const Saved& save(int64_t iteration, int data_key_bytes);
  /// Saves the model at another prefix, with optimizer states; last() stays. Errors: those of Replica::save().
  std::vector<std::filesystem::path> save_copy(const std::string& prefix, int64_t iteration, int data_key_bytes) const {
    return model_->save(prefix, iteration, data_key_bytes, origin_, true);
  }
  /// save() during training: where the file system fails, warns and returns false.
  bool snapshot(int64_t iteration, int data_key_bytes);
  /// What has changed since the last snapshot or delta, in a folder of its own, of which a thread writes the rows; a
  /// snapshot where nothing can be built on. Where the file system fails, warns.
  void save_delta(int64_t iteration, int data_key_bytes);
  /// Says that a delta is written, once it is. Call after each step; not collective.
  void poll_delta();
  /// Waits for the delta that is being written. Not collective.
  void finish_delta();
  /// The same for a model that is better than all before: replaces the best one so far, unless that is a snapshot too.
  bool save_best(int64_t iteration, int data_key_bytes);
  /// The best model, if its files are there.
  const std::optional<Saved>& best() const { return best_; }
  /// On rank 0: removes the final_* in the run folder of the model that this run has saved after an iteration, and the
  /// model, unless the config asks for it.
  void remove(int64_t iteration, bool asked_for) const;
  /// For a run that goes on: the best model that it has saved.
  void go_on_with_best(Saved saved) { best_ = std::move(saved); }
  /// After an error during the step that follows `iteration`: saves the model if it is intact on all ranks, in the run
  /// folder where snapshot_prefix fails. Returns a sentence with the path of the model, or with the reason why saving
  /// failed and the path of last().
  std::string save_after_error(const Error&, int64_t iteration, int data_key_bytes);
  /// "the last model saved is 'out/_dense_20.model'", or that there is none.
  std::string describe_last() const;

  /// On rank 0: hard-links the files of a model into a folder as final_<name>; copies them across file systems. The
  /// model itself is saved already, so that a failure is a warning.
  void link_into(const std::filesystem::path& folder, const Saved&) const;

 private:
  /// The next delta is of what changes from now on.
  void start_deltas(int64_t iteration);
  const Saved& save_at(const std::string& prefix, int64_t iteration, int data_key_bytes);
  /// Why files at the prefix must stay as they are; empty: they need not. On rank 0.
  std::string why_kept(int64_t iteration) const;

  const Config& config_;
  Communicator& comm_;
  Replica* model_;
  std::string prefix_;      // snapshot_prefix_of(), on every rank
  std::string run_prefix_;  // of files that cannot be saved there, in the run folder; empty: there is none
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
  std::unique_ptr<DeltaThread> writing_;       // of rank 0
  std::unique_ptr<DeltaPublisher> publisher_;  // of rank 0
  std::optional<int64_t> delta_base_;          // on rank 0: the iteration of the last model that a delta can build on
  std::optional<int64_t> failed_at_;           // the iteration of the last error at snapshot_prefix
};

}  // namespace hctr
