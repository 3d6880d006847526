#include "serve/served_store.h"

#include "core/base/expect.h"
#include "core/base/log.h"
#include "formats/model/model_manifest.h"
#include "infer/store_models.h"
#include "store/store_config.h"

namespace hctr::serve {

ServedStore::ServedStore(const std::filesystem::path& path, const Surroundings& around) {
  const Log log(around.log);
  std::vector<std::string> notes;
  const StoreConfig config = read_store_config(path, notes);
  for (const std::string& note : notes) log.info(note);
  store_ = std::make_unique<Store>(config.options());
  load_store_models(*store_, config, around);
  follower_ = std::make_unique<StoreFollower>(*store_, config, log);
}

std::shared_ptr<const StoreView> ServedStore::tables(const std::string& model) const {
  return store_->has(model) ? std::make_shared<const StoreView>(store_->view(model)) : nullptr;
}

void ServedStore::expect_same_run(const std::string& model, const SavedModel& dense) const {
  if (!store_->has(model)) return;
  const std::string rows = store_->run(model);
  const auto manifest = manifest_of(dense.dense);
  if (!rows.empty() && manifest && !manifest->run.empty() && manifest->run != rows)
    throw Error(Kind::config, cat("the dense part of model '", model, "' is of run ", manifest->run,
                                  ", and its rows in the store are of run ", rows, ": load both from one run"));
}

}  // namespace hctr::serve
