// The models at a snapshot_prefix, and the runs that saved them: no run may remove the only copy of another run's
// model.
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
  std::string folder;  ///< its run folder; empty: unknown

  bool operator==(const SavingRun& other) const { return id == other.id; }
  /// "run 'runs/first'", or "an unknown run".
  std::string text() const;
};

struct ModelAtPrefix {
  int64_t iteration = 0;
  bool delta = false;  ///< a delta's folder
  fs::path path{};     ///< the dense file, or that folder
};

/// Sorted by iteration.
std::vector<ModelAtPrefix> models_at(const std::string& prefix);
SavingRun saving_run(const ModelAtPrefix&);

/// Where models of a run are saved: snapshot_prefix, or "models/" in the run folder if the config has none.
std::string snapshot_prefix_of(const SolverSection&, const fs::path& run_folder);

/// A run that saves models.
struct OwnRun {
  std::string id{};   ///< of a resumed run; empty for a new one without an id
  fs::path folder{};  ///< if known: earlier runs there, and their models, may be overwritten
};

/// Call before a run with a snapshot_prefix. Warns of another run's model that this run will overwrite while that run's
/// folder keeps a copy. Errors: Error(config) naming a model without another copy.
void expect_no_other_models(const SolverSection&, const OwnRun&, const Log&);
/// The other run whose only copy of a model a new model of this iteration would overwrite; empty: none.
std::string other_run_at(const std::string& prefix, int64_t iteration, const OwnRun&);
/// Whether these are the files of a complete model that run `run` saved after `iteration`, according to its manifest.
/// Models named by a checkpoint or run.json are used or removed only then.
bool is_model_of_run(const std::vector<fs::path>& files, const std::string& run, int64_t iteration);
/// If the run saved the model of this iteration: removes its final_* links in the run folder and, unless `only_links`,
/// the model at the prefix. Returns whether there was one. Never throws; files that cannot be removed stay.
bool remove_model_of_run(const std::string& prefix, int64_t iteration, const OwnRun&, bool only_links = false);

/// The newest complete model at a prefix. Errors: Error(io) if the models there belong to several runs.
int64_t newest_of_one_run(const std::string& prefix);

}  // namespace hctr
