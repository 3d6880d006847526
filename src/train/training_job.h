// A training job in this process: one Run per rank, and the locked folders.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file_lock.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "launch/start.h"
#include "train/look_ahead_group.h"
#include "train/resume.h"
#include "train/run.h"
#include "train/run_folder.h"

namespace hctr {

class TrainingJob {
 public:
  /// Reads the config, chooses devices and folders, and creates the run of each rank. `others`: the other processes, or
  /// null; must outlive the job. `needs_source`: whether a config without a source is an error. Errors: the first error
  /// of any rank.
  TrainingJob(const TrainerOptions&, Processes* others, bool needs_source);
  ~TrainingJob();
  TrainingJob(const TrainingJob&) = delete;
  TrainingJob& operator=(const TrainingJob&) = delete;

  /// The summary, if the resumed run is already finished; otherwise none.
  const std::optional<TrainSummary>& finished() const { return finished_; }
  /// Calls body(run) for every rank of this process, each in its own thread, and waits for all of them. If a call
  /// fails, the run ends. Errors: the first error of any rank, also in every later call.
  void on_ranks(const std::function<void(Run&)>& body);
  /// Like on_ranks(), for work that either all ranks complete or no rank does. If all ranks throw an error, returns the
  /// error and leaves the runs unchanged.
  std::optional<Error> try_on_ranks(const std::function<void(Run&)>& body);
  /// The first rank of this process.
  int first_rank() const { return ranks_->job.first_rank(); }
  int ranks() const { return ranks_->job.ranks(); }

  const Config& config() const { return config_; }
  /// The device of the ranks, for printing.
  std::string device() const;
  /// The device, if there is a single rank in all processes; otherwise none.
  std::optional<Device> only_device() const {
    return ranks() == 1 ? std::optional(ranks_->devices.front()) : std::nullopt;
  }
  bool has_run_folder() const { return options_.run_folder; }
  /// Updates the config after Run::set_source() and similar calls.
  void set_source(const std::string& source) { config_.data.source = source; }
  void set_evaluation_source(const std::string& source) { config_.data.eval_source = source; }
  /// Sets callbacks for displays and evaluations. on_ranks() calls them in its caller's thread.
  void on_display(std::function<bool(const TrainerState&)>);
  void on_evaluation(std::function<bool(const TrainerState&)>);

 private:
  /// One rank of this process.
  struct Place {
    Config config;
    std::optional<ResumePoint> from;
    std::unique_ptr<Run> run;
  };
  bool is_first_process() const { return place_of(others_).process == 0; }
  void read_config(bool needs_source);
  void take_folders();
  /// Determines facts about the data that are needed before reading.
  void look_at_data();
  void open(Communicator&, Device);
  Place& place(const Communicator& comm) { return places_[static_cast<size_t>(comm.rank() - first_rank())]; }
  std::function<bool(const TrainerState&)> for_caller(std::function<bool(const TrainerState&)>);

  TrainerOptions options_;
  Processes* others_;
  Log log_, quiet_;
  std::filesystem::path config_file_;  // "-" if there is no config file
  Config config_;
  std::string source_, eval_source_;  // paths as in the config, before {rank} is replaced
  std::unique_ptr<Ranks> ranks_;
  std::optional<FolderLock> lock_;
  std::optional<ResumePoint> point_;
  bool nothing_to_do_ = false;           // whether the run of point_ is already finished
  std::optional<FileLock> models_lock_;  // lock of snapshot_prefix; a run folder has its own lock
  std::optional<RunFolder> folder_;
  RunFolder no_folder_;
  std::vector<ColumnStatistics> statistics_;
  std::vector<std::string> followed_;
  std::shared_ptr<LookAheadGroup> peers_ = std::make_shared<LookAheadGroup>();
  RunHooks hooks_;
  std::vector<Place> places_;
  std::optional<TrainSummary> finished_;
};

}  // namespace hctr
