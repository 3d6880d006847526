// A version of a model in a store.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "store/pending_rows.h"
#include "store/read_copies.h"
#include "store/store_shared.h"
#include "store/store_table.h"

namespace hctr {

class Json;

/// Owned by views, and by the store while the version is loaded.
struct StoreView::Version {
  explicit Version(std::shared_ptr<StoreShared> of) : store(std::move(of)) {}

  std::shared_ptr<StoreShared> store;
  std::string model, name;
  mutable std::string run{};  // guarded by `changing` of the store; a stream may set it
  OnMiss on_miss = OnMiss::default_vector;

  /// The rows of an update while the levels apply them one by one.
  struct Pending {
    std::vector<ChangesOfTable> changes;  // by table
    std::vector<PendingRows> rows;        // [table] the changed rows, as views of `changes`
  };
  /// The content that a look-up reads; each look-up uses a single content. An update first shows a new content, whose
  /// pending rows hide the old rows of the tables. The update then waits until no look-up uses the previous content,
  /// and changes the tables.
  struct Content {
    std::vector<std::shared_ptr<StoreTable>> tables;
    std::shared_ptr<const Pending> pending{};  // null: no update is in progress
    int64_t iteration = -1;
    uint64_t number = 0;  // number of updates that the content includes
  };
  mutable ReadCopies<Content> content{};

  /// Receives each update once look-ups see it, in the thread that applies the update. Listeners belong to owners of
  /// row copies, such as caches.
  using Listener = std::function<void(const std::vector<ChangesOfTable>&, uint64_t number)>;
  mutable std::vector<std::weak_ptr<const Listener>> listeners{};  // guarded by StoreShared::changing

  /// Totals of the updates of this version.
  struct Progress {
    std::atomic<int64_t> iteration{-1}, updates{0}, updated_rows{0}, removed_rows{0}, waiting{0};
    std::atomic<double> newest{-1};  // time at which the newest applied delta was written, in seconds since 1970
    std::string position{};          // position in the stream of updates; guarded by `changing` of the store
  };
  std::unique_ptr<Progress> progress = std::make_unique<Progress>();

  /// During an update: the description of the version before the update, for commits of other changes. Null otherwise.
  /// Guarded by StoreShared::changing.
  mutable std::shared_ptr<const Json> noted{};

  /// The tables. Only the thread that changes the store may call this.
  const std::vector<std::shared_ptr<StoreTable>>& tables() const { return content.get().tables; }
};

}  // namespace hctr
