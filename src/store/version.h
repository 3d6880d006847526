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

/// Shared by views, and by the store while it is loaded. Look-ups read `tables` while an update changes rows in them,
/// but no update changes the list: an update that must not change tables of other versions first copies them into a new
/// Version.
struct StoreView::Version {
  std::string model, name, run;
  OnMiss on_miss = OnMiss::default_vector;
  std::vector<std::shared_ptr<StoreTable>> tables;
  /// The progress of updates; shared by copies of the version.
  struct Progress {
    std::atomic<int64_t> iteration{-1}, updates{0}, updated_rows{0}, removed_rows{0}, waiting{0};
    std::atomic<double> newest{-1};  // time of the newest applied delta, in seconds since 1970
  };
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

}  // namespace hctr
