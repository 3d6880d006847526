// The store that a service takes tables from, kept up to date.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "infer/saved_model.h"
#include "infer/store_follower.h"
#include "infer/store_models.h"

namespace hctr::serve {

/// Any thread may call the members.
class ServedStore {
 public:
  /// Opens the store that a store.json or ps.json describes, and loads the models that the store lacks. Then follows
  /// the store's streams and deltas, and the process that updates the store. Errors: those of open_store().
  ServedStore(const std::filesystem::path& config, const Surroundings&);

  /// The active version of a model; null: the store has no such model.
  std::shared_ptr<const StoreView> tables(const std::string& model) const;
  /// Errors: Error(config) if the store's rows are of another training run than the dense part.
  void expect_same_run(const std::string& model, const SavedModel& dense) const;

  std::vector<StoreModelStatistics> models() const { return opened_.store.models(); }
  std::vector<StoreTableStatistics> levels() const { return opened_.store.tables(); }
  std::vector<StoreFollower::Stream> streams() const { return follower_.streams(); }

 private:
  ConfiguredStore opened_;
  StoreFollower follower_;  // declared last, so that it is destroyed before the store
};

}  // namespace hctr::serve
