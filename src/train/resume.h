// --resume: chooses the checkpoint to resume from, and checks that the config allows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "formats/checkpoint/manifest.h"
#include "hctr/solver.h"
#include "train/run_progress.h"

namespace hctr {

/// A complete checkpoint to resume from.
struct ResumePoint {
  fs::path folder;
  Manifest manifest;
  RunProgress progress;

  const std::string& run() const;  ///< id of the run
  fs::path run_dir() const;
  int64_t metrics_bytes() const;  ///< size of metrics.jsonl
  int ranks() const { return static_cast<int>(manifest.files.size()); }
  const Json* plan() const;  ///< placement plan; null on one rank
  /// Whether the config has the checkpoint's number of ranks, so that the resumed run has bitwise equal results.
  bool exact_for(const Config&, int ranks) const;
  /// Whether the run is already finished.
  bool finished_for(const Config&) const;
};

/// The checkpoint that `options.resume` names. "latest" means the newest complete checkpoint; if there is none, logs
/// this and returns none. Reads and verifies all files of the checkpoint. Errors: Error(config) if "latest" has no
/// folder to search; Error(io); Error(data) with the name of a damaged file.
std::optional<ResumePoint> find_resume_point(const TrainOptions&, const Config&, const Log&);
/// Collective. Broadcasts rank 0's resume point.
std::optional<ResumePoint> broadcast(Communicator&, const ResumePoint* of_rank_0);

/// The facts about the run that a checkpoint stores.
Json about_run(const std::string& run, const Config&, const std::string& device, const Json& data, const Json& plan);

/// Compares the config with the checkpoint's config. Logs permitted changes. Errors: Error(config) with every forbidden
/// change, its two values, and the reason.
void expect_same_run(const ResumePoint&, const Config&, const Log&);
/// Collective. Compares the configs of all processes. The paths of data files may differ. Errors: Error(config) on all
/// ranks, with the host and the fields that differ from rank 0's config.
void expect_one_config(Communicator&, const Config&);
/// Errors: Error(data) if the training data differ from the checkpoint's.
void expect_same_data(const ResumePoint&, const Json& data, const Config&);

/// The summary of a finished run.
TrainSummary summary_of(const RunProgress&);

/// Claims the config's checkpoint folder for this run; the caller holds the folder's lock. Moves checkpoints of other
/// runs to <folder>.1 (.2, ...), ignores checkpoints newer than `from`, and logs both. Errors: Error(io).
void take_checkpoint_folder(const Config&, const ResumePoint* from, const Log&);
/// Whether the checkpoint is in the config's checkpoint folder.
bool in_checkpoint_folder(const Config&, const ResumePoint&);

}  // namespace hctr
