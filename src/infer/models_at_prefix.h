// The models at a snapshot_prefix, and the runs that saved them. These functions ensure that no run removes the only
// copy of another run's model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// The run that saved a model, according to its manifest.
struct SavingRun {
  std::string id;      ///< empty: there is no manifest
  std::string folder;  ///< the run folder; empty: unknown

  bool operator==(const SavingRun& other) const { return id == other.id; }
  /// Returns "run 'runs/first'", or "an unknown run".
  std::string text() const;
};

struct ModelAtPrefix {
  int64_t iteration = 0;
  bool delta = false;  ///< whether this is a delta
  fs::path path{};     ///< the dense file, or the delta's folder
};

/// Sorted by iteration.
std::vector<ModelAtPrefix> models_at(const std::string& prefix);
SavingRun saving_run(const ModelAtPrefix&);

/// The prefix of a run's models: snapshot_prefix, or "models/" in the run folder if the config has none.
std::string snapshot_prefix_of(const SolverSection&, const fs::path& run_folder);

/// A run that saves models.
struct OwnRun {
  std::string id{};   ///< id of a resumed run; empty for a new run without an id
  fs::path folder{};  ///< the run folder, whose earlier models may be overwritten; empty: unknown
};

/// Checks, before a run, whether it would overwrite models of other runs at its snapshot_prefix. Logs a warning for
/// each such model that is also in the other run's folder. Errors: Error(config) naming a model that is not.
void expect_no_other_models(const SolverSection&, const OwnRun&, const Log&);
/// The run that would lose its only copy of a model if a new model of this iteration were saved; empty: none.
std::string other_run_at(const std::string& prefix, int64_t iteration, const OwnRun&);
/// Whether the files are a complete model that run `run` saved after `iteration`, according to its manifest. Models
/// named by a checkpoint or run.json are used or removed only if this is true.
bool is_model_of_run(const std::vector<fs::path>& files, const std::string& run, int64_t iteration);
/// If the run saved the model of this iteration, removes its files: the final_* links in the run folder and, unless
/// `only_links`, the model at the prefix. Returns whether there was such a model. Never throws; files that cannot be
/// removed stay.
bool remove_model_of_run(const std::string& prefix, int64_t iteration, const OwnRun&, bool only_links = false);

/// The iteration of the newest complete model at a prefix. Errors: Error(io) if the models there belong to several
/// runs.
int64_t newest_of_one_run(const std::string& prefix);

}  // namespace hctr
