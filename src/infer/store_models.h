// Saved models as sources of a store's tables.
#pragma once

#include <string>

#include "core/base/log.h"
#include "hctr/store_stream.h"
#include "hctr/surroundings.h"
#include "store/store_config.h"

namespace hctr {

/// The version that a section of store.json describes. For a "model" it serves all tables from its files or, for a
/// checkpoint, from a model that is loaded into memory when its rows are read. Errors: those of find_saved_model().
StoreModel store_model(const StoreModelSection&, const Surroundings&, const Log&);
/// The same without loading a checkpoint: reading its rows is an error.
StoreModel store_model_unloaded(const StoreModelSection&, const Surroundings&, const Log&);

/// Loads the models of the config that the store lacks, makes those of the config the ones that answer, and applies
/// their deltas: those of files, and those that are in the topics of their streams now. A broker that does not answer
/// is a warning.
void load_store_models(Store&, const StoreConfig&, const Surroundings&);
/// What is wrong in a stream: messages that are damaged or missing, deltas that cannot be applied. Empty: nothing.
std::string stream_trouble(const StoreStreamStatistics&);

}  // namespace hctr
