// Saved models as sources of a store's tables.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/log.h"
#include "hctr/store_stream.h"
#include "hctr/surroundings.h"
#include "store/store_config.h"

namespace hctr {

/// Returns the model version that a section of store.json describes. If the section names a "model", the version has
/// all tables of that model. Their rows come from table files or, for a checkpoint, from a model that is loaded into
/// memory to read them. Errors: those of find_saved_model().
StoreModel store_model(const StoreModelSection&, const Surroundings&, const Log&);
/// Like store_model(), without loading a checkpoint: reading a checkpoint's rows is an error.
StoreModel store_model_unloaded(const StoreModelSection&, const Surroundings&, const Log&);

/// Loads the config's models that the store lacks, and activates the config's versions. Then applies the deltas of
/// these versions: those in files, and those that their streams contain now. A broker that does not answer causes a
/// warning.
void load_store_models(Store&, const StoreConfig&, const Surroundings&);
/// A store and the config that it was opened from.
struct ConfiguredStore {
  StoreConfig config;
  Store store;
};
/// Opens the store that a config describes. The arguments and errors are those of open_store(). Streams are read only
/// once, during this call.
ConfiguredStore open_configured_store(const std::filesystem::path& config, const std::string& text, bool loads,
                                      const Surroundings&);
/// Describes problems of a stream: damaged or missing messages, and deltas that cannot be applied. Empty: no problems.
std::string stream_trouble(const StoreStreamStatistics&);

}  // namespace hctr
