// --model: the saved model that evaluation and prediction use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "formats/checkpoint/whole_checkpoint.h"
#include "hctr/surroundings.h"
#include "infer/model_encoding.h"

namespace hctr {

/// A checkpoint, or model files.
struct SavedModel {
  std::string name;                      ///< for messages: "the final model of run 'runs/a', iteration 60"
  int64_t iteration = 0;                 ///< finished updates
  std::string dense = {};                ///< of model files
  std::vector<std::string> tables = {};  ///< of model files, in the order of the config
  std::optional<WholeCheckpoint> checkpoint = {};
  std::vector<ColumnStatistics> statistics = {};  ///< of dense columns
  std::vector<SlotKeyRule> slot_key_rules = {};   ///< of the data that it was trained on; empty: not known
  std::string numbering = {};                     ///< of the data that it was trained on; empty: not known
  EncodingChange encoding = {};                   ///< where its config encodes data otherwise
  std::string differences = {};  ///< layers that the saved config has otherwise; empty: none, or not known
};

/// The config that a saved model holds.
struct SavedConfig {
  Json json;
  std::string where;  ///< the file
};
/// Of a run folder, a checkpoint, or model files with a manifest. Errors: Error(io) when there is no such model;
/// Error(usage) when it does not hold its config.
SavedConfig saved_config(const std::string& model, const Environment&);

/// Finds the model that `--model` names, by what is there. `with_tables`: otherwise its tables are elsewhere, and their
/// files need not be there.
///   RUN                  a run folder: its final model
///   CHECKPOINT           the folder of a checkpoint, or of several: the newest whole one
///   PREFIX               a snapshot_prefix: the newest of its models
///   PREFIX@ITERATION     that one
///   ..._dense_<n>.model  the model of this file
/// Errors: Error(io) when there is none, with what was looked for and what is there; Error(data) when it has other
/// tables than the config.
SavedModel find_saved_model(const std::string& model, const Config&, const Environment&, const Log&,
                            bool with_tables = true);

/// The statistics of dense columns in a checkpoint; none where it has none. Errors: Error(data).
std::vector<ColumnStatistics> statistics_of(const Manifest&);

/// Collective. What rank 0 has found, for all ranks.
SavedModel broadcast(Communicator&, const SavedModel* of_rank_0);

/// Names the model files in the config, from which Replica::load() takes them, and nothing else that training starts
/// from; nor does the model get the optimizer states that training has. Takes the model's statistics of dense columns.
/// Errors: Error(data) when it lacks some that the config needs.
void use_saved_model(const SavedModel&, Config&);

}  // namespace hctr
