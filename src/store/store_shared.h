// Data shared by a store and its versions. Views keep these data alive after the store is destroyed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "hctr/store.h"

namespace hctr {

class BoundVersion;

struct StoreShared {
  // Lock in this order. An update that waits for its rate limit holds only `updating`, so that versions can be loaded
  // and activated during this wait.
  std::mutex caching;   // serializes the creation of caches for models; guards `caches`
  std::mutex updating;  // serializes updates, unload() and compact()
  std::mutex changing;  // held to change levels or the list of models

  StoreCacheOptions cache{};       ///< options of the caches that models use
  bool changes_elsewhere = false;  ///< another program changes rows of the lowest level, so that no copy stays correct
  std::vector<std::weak_ptr<BoundVersion>> caches{};  ///< the caches that models use
};

}  // namespace hctr
