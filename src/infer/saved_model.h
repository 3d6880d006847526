// --model: finds the saved model for evaluation and prediction.
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
  std::string dense = {};                ///< the dense model file, if it is not a checkpoint
  std::vector<std::string> tables = {};  ///< the table files, in the order of the config
  std::optional<WholeCheckpoint> checkpoint = {};
  std::vector<ColumnStatistics> statistics = {};  ///< of dense columns
  std::vector<SlotKeyRule> slot_key_rules = {};   ///< of its training data; empty: unknown
  std::string numbering = {};                     ///< of its training data; empty: unknown
  EncodingChange encoding = {};                   ///< differences of its config's encoding
  std::string differences = {};                   ///< layers that differ from the saved config; empty: none, or unknown
};

/// The config saved with a model.
struct SavedConfig {
  Json json;
  std::string where;  ///< the file
};
/// From a run folder, a checkpoint, or model files with a manifest. Errors: Error(io) if there is no such model;
/// Error(usage) if it was saved without its config.
SavedConfig saved_config(const std::string& model, const Environment&);

/// Finds the model that `--model` names, by what is there. `with_tables`: otherwise its tables are elsewhere, and their
/// files need not be there.
///   RUN                  a run folder: its final model
///   CHECKPOINT           the folder of a checkpoint, or of several: the newest complete one
///   PREFIX               a snapshot_prefix: the newest of its models
///   PREFIX@ITERATION     that one
///   ..._dense_<n>.model  the model of this file
/// Errors: Error(io) when there is none, with what was looked for and what is there; Error(data) when it has other
/// tables than the config.
SavedModel find_saved_model(const std::string& model, const Config&, const Environment&, const Log&,
                            bool with_tables = true);

/// The statistics of dense columns in a checkpoint; empty if it has none. Errors: Error(data).
std::vector<ColumnStatistics> statistics_of(const Manifest&);

/// Collective. Broadcasts rank 0's model.
SavedModel broadcast(Communicator&, const SavedModel* of_rank_0);

/// Sets the model files as the only initial files of the config, from which Replica::load() reads them, without
/// optimizer states. Copies the model's statistics of dense columns. Errors: Error(data) when it lacks statistics that
/// the config needs.
void use_saved_model(const SavedModel&, Config&);

}  // namespace hctr
