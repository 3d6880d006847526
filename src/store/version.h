// A version of a model in a store.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "store/store_table.h"

namespace hctr {

/// Views hold it, and so does the store as long as it is loaded. Look-ups read `tables` while an update changes rows
/// in them, but no update changes the list: one that must not change tables of other versions makes copies in a new
/// Version first.
struct StoreView::Version {
  std::string model, name, run;
  OnMiss on_miss = OnMiss::default_vector;
  std::vector<std::shared_ptr<StoreTable>> tables;
  /// What updates have done; shared by copies of the version.
  struct Progress {
    std::atomic<int64_t> iteration{-1}, updates{0}, updated_rows{0}, removed_rows{0}, waiting{0};
    std::atomic<double> newest{-1};  // when the newest applied delta was written, in seconds since 1970
    std::string position{};          // in the stream of updates; guarded by `changing` of the store
  };
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

}  // namespace hctr
