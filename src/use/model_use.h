// Shared by evaluation and prediction: the config, the ranks, and the saved model on each of them.
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
  const Log& log;      ///< silent on ranks other than 0, but for errors

  const Config& config() const { return model.config(); }
  const SavedModel& saved() const { return model.saved(); }
  Communicator& comm() const { return model.comm(); }
  Runtime& runtime() const { return model.runtime(); }
  Replica& replica() const { return model.replica(); }
};

/// The samples that the options name, in place of the config's evaluation set. Errors: Error(usage) when there are
/// none.
void choose_data(const ModelOptions&, Config&);

/// Reads the config, and calls prepare(config). Then finds the model, loads it on every rank and calls body() there.
/// Returns the first rank of this process. `doing`: for messages, "evaluating". `out`: the file to write, which must
/// not be one that is read; empty: none. Errors: Error(usage) where it is, before the model is loaded.
int use_model(const ModelOptions&, const std::string& doing, const std::function<void(Config&)>& prepare,
              const std::function<void(ModelOnRank&)>& body, const std::string& out = {});
/// On every rank, before there is a result: reports how many keys have rows, and keeps it in `use` on rank 0. Errors:
/// those of expect_matches(), unless the options allow it.
void report_matches(const ModelOnRank&, std::vector<SlotMatches>, const ModelOptions&, ModelUse&);
/// Fills in what is known on rank 0 after what began at `start`.
void describe_use(const ModelOnRank&, std::chrono::steady_clock::time_point start, ModelUse&);

}  // namespace hctr
