// Shared by evaluation, prediction and export: the config, the ranks, and the saved model on each rank.
#pragma once

#include <chrono>
#include <functional>

#include "formats/data/source.h"
#include "hctr/use_model.h"
#include "infer/loaded_model.h"
#include "launch/start.h"

namespace hctr {

/// One rank with the saved model.
struct ModelOnRank {
  LoadedModel& model;
  BatchLayout layout;  ///< layout of evaluation batches
  const Log& log;      ///< on rank 0 logs everything, on other ranks only errors

  const Config& config() const { return model.config(); }
  const SavedModel& saved() const { return model.saved(); }
  Communicator& comm() const { return model.comm(); }
  Runtime& runtime() const { return model.runtime(); }
  Replica& replica() const { return model.replica(); }
};

/// Replaces the config's evaluation set by the samples that the options name, if any. Errors: Error(usage) if there are
/// no samples.
void choose_data(const ModelOptions&, Config&);

/// Reads the config, calls prepare(config), finds the model, loads it on every rank, and calls body() there. Returns
/// the first rank of this process. `doing`: an activity for messages, such as "evaluating". `out`: the file to write;
/// empty: none. Errors: Error(usage), before the model is loaded, if `out` is an input file.
int use_model(const ModelOptions&, const std::string& doing, const std::function<void(Config&)>& prepare,
              const std::function<void(ModelOnRank&)>& body, const std::string& out = {});
/// Called on every rank. Reports how many keys have rows, and stores the numbers in `use` on rank 0. Call it before
/// results are written. Errors: those of expect_matches(), unless the options allow unmatched keys.
void report_matches(const ModelOnRank&, std::vector<SlotMatches>, const ModelOptions&, ModelUse&);
/// Fills the fields of ModelUse on rank 0. `start`: the start time of the work.
void describe_use(const ModelOnRank&, std::chrono::steady_clock::time_point start, ModelUse&);

}  // namespace hctr
