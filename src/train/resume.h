// --resume: chooses the checkpoint to resume from, and checks that the config may resume from it.
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

/// A whole checkpoint.
struct ResumePoint {
  fs::path folder;
  Manifest manifest;
  RunProgress progress;

  const std::string& run() const;  ///< id of the run
  fs::path run_dir() const;
  int64_t metrics_bytes() const;  ///< size of metrics.jsonl
  int ranks() const { return static_cast<int>(manifest.files.size()); }
  const Json* plan() const;  ///< placement plan; null on one rank
  /// Whether this config has the checkpoint's number of ranks, so that results are unchanged bit for bit.
  bool exact_for(const Config&, int ranks) const;
  /// Whether the run is finished, so that there is nothing to do.
  bool finished_for(const Config&) const;
};

/// The checkpoint that `options.resume` names. "latest" is the newest complete one, or none if there is none, which is
/// logged. Reads and verifies all of its files. Errors: Error(config) when "latest" has no folder to search; Error(io);
/// Error(data) naming the damaged file.
std::optional<ResumePoint> find_resume_point(const TrainOptions&, const Config&, const Log&);
/// Collective. Broadcasts rank 0's point.
std::optional<ResumePoint> broadcast(Communicator&, const ResumePoint* of_rank_0);

/// The facts about its run that a checkpoint stores.
Json about_run(const std::string& run, const Config&, const std::string& device, const Json& data, const Json& plan);

/// Compares the config with that of the checkpoint. Allowed changes are logged. Errors: Error(config) naming every
/// field that must not change, its values, and why.
void expect_same_run(const ResumePoint&, const Config&, const Log&);
/// Collective. Compares the configs that the ranks have read, each in its process. They may name different data files.
/// Errors: Error(config) on all ranks, naming the host and the fields that differ from rank 0's.
void expect_one_config(Communicator&, const Config&);
/// Errors: Error(data) when the training data differ from the checkpoint's.
void expect_same_data(const ResumePoint&, const Json& data, const Config&);

/// The summary of a finished run.
TrainSummary summary_of(const RunProgress&);

/// Claims the config's checkpoint folder, whose lock the caller holds, for this run: moves checkpoints of other runs to
/// <folder>.1 (.2, ...), ignores those newer than `from`, and logs it. Errors: Error(io).
void take_checkpoint_folder(const Config&, const ResumePoint* from, const Log&);
/// Whether the checkpoint lies in the config's checkpoint folder.
bool in_checkpoint_folder(const Config&, const ResumePoint&);

}  // namespace hctr
