// The keys of a batch of one table, as the caller passed them, and the lists that are derived from these keys.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device/arena.h"
#include "core/device/context.h"
#include "ops/embedding/bag_input.h"
#include "ops/embedding/bag_pool.h"
#include "ops/embedding/batch_rows.h"
#include "ops/embedding/key_batch.h"

namespace hctr {

/// A feature of a table.
struct TableFeature {
  size_t number = 0;  ///< index of the feature in the set
  std::string name;
  ops::BagPooling pooling = ops::BagPooling::sum;
  bool weighted = false;
};

/// The memory of a feature's vectors, or of their gradients.
struct PlacedVectors {
  float* data = nullptr;
  int64_t stride = 0;
};

/// The features of a table.
struct TableFeatures {
  std::vector<TableFeature> all;
  int64_t dim = 0;
  bool plain = false;  ///< see SetTable
  bool weighted() const;
  int64_t with_max() const;  ///< number of features with max pooling
  int64_t count() const { return static_cast<int64_t>(all.size()); }
};

struct SetInput {
  int64_t samples = 0, keys = 0;  // capacity
  Arena arena{};
  int64_t* of_keys = nullptr;  // [keys]
  int32_t* offsets = nullptr;  // [features * samples + 1]
  float* weights = nullptr;    // [keys]; only for a table with weighted features
  int32_t* numbers = nullptr;  // [keys]: 0, 1, 2, ...; only for a table that is not plain
  float* gradients = nullptr;  // plain table: [samples, features, dim]; other tables: [keys, dim]
  int32_t* chosen = nullptr;   // [samples, dim] for each feature with max pooling
  // The next members describe the current batch.
  int64_t batch_samples = 0, batch_keys = 0;
  std::vector<int64_t> most;  // [feature]: maximum keys

  bool fits(int64_t samples_given, int64_t keys_given) const { return samples_given <= samples && keys_given <= keys; }
  /// Reserves memory for a batch. Runs on the host. `most_keys`: maximum keys of any batch. Waits for queued work if
  /// memory must be reallocated.
  void reserve(Runtime&, const TableFeatures&, int64_t batch_samples, int64_t batch_keys, int64_t most_keys);
  /// Writes the keys and offsets of all features, ordered by feature.
  void place(Context&, const TableFeatures&, int64_t batch_samples, std::span<const ops::FeatureBags>);

  ops::BagList bags_of(const TableFeatures&, size_t feature, const int32_t* rows) const;
  ops::FeatureRange range_of(size_t feature) const;  ///< the positions of the feature's keys
  int32_t* chosen_of(const TableFeatures&, size_t feature) const;
  Tensor vectors_of(Device, const TableFeatures&, size_t feature, const PlacedVectors&) const;
};

/// Whether all features are pooled by the same combiner without weights. Such features are the slots of one batch of a
/// table.
bool pooled_alike(const std::vector<TableFeature>&);
/// The common combiner of the features; sum if they differ.
ops::Combiner combiner_of(const std::vector<TableFeature>&);

/// Returns a capacity above the current need, so that slowly growing batches do not reallocate every time.
int64_t ample(int64_t needed, int64_t have);

}  // namespace hctr
