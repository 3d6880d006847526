#include "serve/served_store.h"

#include "core/base/expect.h"
#include "core/base/log.h"
#include "formats/model/model_manifest.h"

namespace hctr::serve {

ServedStore::ServedStore(const std::filesystem::path& path, const Surroundings& around)
    : opened_(open_configured_store(path, "", true, around)),
      follower_(opened_.store, opened_.config, Log(around.log)) {}

std::shared_ptr<const StoreView> ServedStore::tables(const std::string& model) const {
  return opened_.store.has(model) ? std::make_shared<const StoreView>(opened_.store.view(model)) : nullptr;
}

void ServedStore::expect_same_run(const std::string& model, const SavedModel& dense) const {
  if (!opened_.store.has(model)) return;
  const std::string rows = opened_.store.run(model);
  const auto manifest = manifest_of(dense.dense);
  if (!rows.empty() && manifest && !manifest->run.empty() && manifest->run != rows)
    throw Error(Kind::config,
                cat("the dense part of model '", model, "' is of run ", manifest->run,
                    ", but the rows of the model in the store are of run ", rows, ": load both from one run"));
}

}  // namespace hctr::serve
