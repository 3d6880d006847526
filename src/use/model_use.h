// What evaluation and prediction share: the config, the ranks, and the saved model on each of them.
#pragma once

#include <chrono>
#include <functional>

#include "formats/data/source.h"
#include "hctr/use_model.h"
#include "train/start.h"
#include "use/saved_model.h"

namespace hctr {

/// One rank with the saved model.
struct LoadedModel {
  const Config& config;
  const SavedModel& saved;
  Device device;
  Communicator& comm;
  Runtime& runtime;
  Replica& model;
  const BatchLayout& layout;  ///< of evaluation batches
  const Log& log;             ///< silent on ranks other than 0, but for errors
};

/// The config that a model is used with, as the options say. Errors: those of load_config() and saved_config().
Config config_of_model(const ModelOptions&, const Log&);

/// The samples that the options name, in place of the config's evaluation set. Errors: Error(usage) when there are
/// none.
void choose_data(const ModelOptions&, Config&);

/// The evaluation samples for scores alone: without the columns that only training and metrics read.
Source prediction_source(const Config&);

/// Reads the config, and calls prepare(config). Then finds the model, loads it on every rank and calls body() there.
/// Returns the first rank of this process. `doing`: for messages, "evaluating". `out`: the file to write, which must
/// not be one that is read; empty: none. Errors: Error(usage) where it is, before the model is loaded.
int use_model(const ModelOptions&, const std::string& doing, const std::function<void(Config&)>& prepare,
              const std::function<void(LoadedModel&)>& body, const std::string& out = {});
/// On every rank, before there is a result: reports how many keys have rows, and keeps it in `use` on rank 0. Errors:
/// those of expect_matches(), unless the options allow it.
void report_matches(const LoadedModel&, std::vector<SlotMatches>, const ModelOptions&, ModelUse&);
/// Fills in what is known on rank 0 after what began at `start`.
void describe_use(const LoadedModel&, std::chrono::steady_clock::time_point start, ModelUse&);

}  // namespace hctr
