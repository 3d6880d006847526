// The store that a service takes tables from, kept up to date.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "infer/saved_model.h"
#include "infer/store_follower.h"

namespace hctr::serve {

/// Any thread.
class ServedStore {
 public:
  /// Opens the store of a store.json or ps.json, and loads the models that it lacks. Then follows its streams, its
  /// deltas and the process that updates it. Errors: those of read_store_config() and load_store_models().
  ServedStore(const std::filesystem::path& config, const Surroundings&);

  /// The active version of a model; null: the store has no such model.
  std::shared_ptr<const StoreView> tables(const std::string& model) const;
  /// Errors: Error(config) if the store's rows are of another training run than the dense part.
  void expect_same_run(const std::string& model, const SavedModel& dense) const;

  std::vector<StoreModelStatistics> models() const { return store_->models(); }
  std::vector<StoreTableStatistics> levels() const { return store_->tables(); }
  std::vector<StoreFollower::Stream> streams() const { return follower_->streams(); }

 private:
  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreFollower> follower_;  // ends before the store
};

}  // namespace hctr::serve
