// Finds the saved model that the option --model names.
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

/// A saved model: a checkpoint, or model files.
struct SavedModel {
  std::string name;                      ///< name in messages: "the final model of run 'runs/a', iteration 60"
  int64_t iteration = 0;                 ///< number of training steps
  std::string dense = {};                ///< the dense model file; empty for a checkpoint
  std::vector<std::string> tables = {};  ///< the table files, in the order of the config
  std::optional<WholeCheckpoint> checkpoint = {};
  std::vector<ColumnStatistics> statistics = {};  ///< statistics of dense columns
  std::vector<SlotKeyRule> slot_key_rules = {};   ///< key rules of its training data; empty: unknown
  std::string numbering = {};                     ///< "numbering" of its training data; empty: unknown
  EncodingChange encoding = {};                   ///< differences between the saved encoding and the config's
  std::string differences = {};                   ///< layers that differ from the saved config; empty: none, or unknown
};

/// The config saved with a model.
struct SavedConfig {
  Json json;
  std::string where;  ///< path of the file that contains the config
};
/// Reads the config saved with a run folder, a checkpoint, or model files with a manifest. Errors: Error(io) if there
/// is no such model; Error(usage) if the model was saved without its config.
SavedConfig saved_config(const std::string& model, const Environment&);

/// Finds the model that `--model` names. `with_tables`: if false, its table files need not exist. Forms of `model`:
///   RUN                  a run folder: its final model
///   CHECKPOINT           the folder of a checkpoint, or of several: the newest complete one
///   PREFIX               a snapshot_prefix: the newest of its models
///   PREFIX@ITERATION     the model of this iteration at the prefix
///   ..._dense_<n>.model  the model of this file
/// Errors: Error(io) if there is no model, listing the searched paths and the models nearby; Error(data) if the model's
/// tables differ from the config's.
SavedModel find_saved_model(const std::string& model, const Config&, const Environment&, const Log&,
                            bool with_tables = true);

/// The statistics of dense columns in a checkpoint; empty if it has none. Errors: Error(data).
std::vector<ColumnStatistics> statistics_of(const Manifest&);

/// Collective. Broadcasts rank 0's model.
SavedModel broadcast(Communicator&, const SavedModel* of_rank_0);

/// Sets the model files as the config's only initial files, without optimizer states; Replica::load() reads these
/// files. Copies the model's statistics of dense columns. Errors: Error(data) if the model lacks statistics that the
/// config needs.
void use_saved_model(const SavedModel&, Config&);

}  // namespace hctr
