// The models at a snapshot_prefix, and the runs that have saved them: no run removes the only copy of another one's
// model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

/// The run that has saved a model, as its manifest says.
struct SavingRun {
  std::string id;      ///< empty: no manifest says
  std::string folder;  ///< its run folder; empty: not known

  bool operator==(const SavingRun& other) const { return id == other.id; }
  /// "run 'runs/first'", or "an unknown run".
  std::string text() const;
};

struct ModelAtPrefix {
  int64_t iteration = 0;
  bool delta = false;  ///< a folder of what has changed
  fs::path path{};     ///< the dense file, or that folder
};

/// In the order of their iterations.
std::vector<ModelAtPrefix> models_at(const std::string& prefix);
SavingRun saving_run(const ModelAtPrefix&);

/// Where models of a run are saved: snapshot_prefix, or "models/" in the run folder where the config has none.
std::string snapshot_prefix_of(const SolverSection&, const fs::path& run_folder);

/// A run that saves models.
struct OwnRun {
  std::string id{};   ///< of one that goes on; empty for a new one that has none yet
  fs::path folder{};  ///< where it is known: earlier runs there, and their models, are replaced
};

/// Before a run with a snapshot_prefix. Warns of a model of another run that this one will replace, and that the folder
/// of that run keeps. Errors: Error(config) naming a model of which there is no other copy.
void expect_no_other_models(const SolverSection&, const OwnRun&, const Log&);
/// The other run whose model, of which there is no other copy, a new one of this iteration would replace; empty: none
/// would be.
std::string other_run_at(const std::string& prefix, int64_t iteration, const OwnRun&);
/// Whether these are files of one whole model that run `run` has saved after `iteration`, as its manifest says. What a
/// checkpoint or run.json names is only used, or removed, where this is so.
bool is_model_of_run(const std::vector<fs::path>& files, const std::string& run, int64_t iteration);
/// Removes what names the model of an iteration in the folder of the run as final_*, where that run has saved it, and
/// unless `only_links` the model at the prefix. Returns whether there was one. Errors: none; what cannot be removed
/// stays.
bool remove_model_of_run(const std::string& prefix, int64_t iteration, const OwnRun&, bool only_links = false);

/// The newest whole model at a prefix. Errors: Error(io) where the models there are of several runs.
int64_t newest_of_one_run(const std::string& prefix);

}  // namespace hctr
