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
#include "store/store_table.h"

namespace hctr {

/// Views hold it, and so does the store as long as it is loaded.
struct StoreView::Version {
  std::string model, name;
  mutable std::string run{};  // guarded by `changing` of the store: a stream may tell it
  OnMiss on_miss = OnMiss::default_vector;

  /// The rows that an update changes, while the levels take them one after the other.
  struct Pending {
    std::vector<ChangesOfTable> changes;  // by table
    std::vector<PendingRows> rows;        // likewise; they refer to `changes`
  };
  /// What answers are made of: each of one content. An update makes another one, whose pending rows hide those of its
  /// tables, and changes the tables only once no answer is made of the one before.
  struct Content {
    std::vector<std::shared_ptr<StoreTable>> tables;
    std::shared_ptr<const Pending> pending{};  // null: no update is under way
    int64_t iteration = -1;
    uint64_t number = 0;  // of updates that it shows
  };
  mutable ReadCopies<Content> content{};

  /// Whoever keeps rows elsewhere hears of each update once it is shown, from the thread that applies it.
  using Listener = std::function<void(const std::vector<ChangesOfTable>&, uint64_t number)>;
  mutable std::vector<std::weak_ptr<const Listener>> listeners{};  // guarded by Store::State::changing

  /// What updates have done.
  struct Progress {
    std::atomic<int64_t> iteration{-1}, updates{0}, updated_rows{0}, removed_rows{0}, waiting{0};
    std::atomic<double> newest{-1};  // when the newest applied delta was written, in seconds since 1970
    std::string position{};          // in the stream of updates; guarded by `changing` of the store
  };
  std::unique_ptr<Progress> progress = std::make_unique<Progress>();

  /// The tables, of the thread that changes the store.
  const std::vector<std::shared_ptr<StoreTable>>& tables() const { return content.get().tables; }
};

}  // namespace hctr
