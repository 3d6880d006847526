// --resume: which checkpoint a run goes on from, and whether its config may.
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

  const std::string& run() const;  ///< the id of the run
  fs::path run_dir() const;
  int64_t metrics_bytes() const;  ///< of metrics.jsonl
  int ranks() const { return static_cast<int>(manifest.files.size()); }
  const Json* plan() const;  ///< the placement plan; null on one rank
  /// Whether the state fits this config's ranks as it is, so that the numbers stay the same.
  bool exact_for(const Config&, int ranks) const;
  /// Whether the run is at its end, so that there is nothing to do.
  bool finished_for(const Config&) const;
};

/// The checkpoint that `options.resume` names; with "latest" the newest whole one, or none where there is none, which
/// the log says. Reads all of its files. Errors: Error(config) when "latest" has no folder to look in; Error(io);
/// Error(data) naming the file that is damaged.
std::optional<ResumePoint> find_resume_point(const TrainOptions&, const Config&, const Log&);
/// Collective. What rank 0 has, for all ranks.
std::optional<ResumePoint> broadcast(Communicator&, const ResumePoint* of_rank_0);

/// What a checkpoint keeps of the run that its state belongs to.
Json about_run(const std::string& run, const Config&, const std::string& device, const Json& data, const Json& plan);

/// Compares the config with that of the checkpoint. What may change is logged, the rest is an error. Errors:
/// Error(config) naming every field that may not change, its values, and why.
void expect_same_run(const ResumePoint&, const Config&, const Log&);
/// Collective. Compares the configs that the ranks have read, each in its process. They may name other files for the
/// data. Errors: Error(config) on all ranks, naming the host and the fields that differ from those of rank 0.
void expect_one_config(Communicator&, const Config&);
/// Errors: Error(data) when the training data are not those of the checkpoint.
void expect_same_data(const ResumePoint&, const Json& data, const Config&);

/// The numbers of a finished run.
TrainSummary summary_of(const RunProgress&);

/// Makes the config's checkpoint folder that of this run, whose lock the caller has: checkpoints of other runs are
/// moved to <folder>.1 (.2, ...), newer ones than `from` are left out, and the log says so. Errors: Error(io).
void take_checkpoint_folder(const Config&, const ResumePoint* from, const Log&);
/// Whether the checkpoint lies in the config's checkpoint folder.
bool in_checkpoint_folder(const Config&, const ResumePoint&);

}  // namespace hctr
