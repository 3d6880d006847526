// One table of an EmbeddingSet: its features, the memory of its batches, and the calls of a step for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device/arena.h"
#include "engine/table/table.h"
#include "hctr/embedding.h"
#include "ops/embedding/bag_input.h"
#include "ops/embedding/bag_pool.h"

namespace hctr {

/// A feature of a table.
struct TableFeature {
  size_t number = 0;  ///< of the set's
  std::string name;
  ops::BagPooling pooling = ops::BagPooling::sum;
  bool weighted = false;
};

/// Where the vectors of a feature are, or their gradients.
struct PlacedVectors {
  float* data = nullptr;
  int64_t stride = 0;
};

/// Features that are pooled alike, without weights, are the slots of one batch, whose vectors and gradients the table
/// reads and writes where they lie side by side (a "plain" table). Others are pooled one by one, and every key has a
/// gradient of its own in a list.
class SetTable {
 public:
  /// Errors: Error(device).
  SetTable(Runtime&, const TableSpec&, std::vector<TableFeature>, int batches);

  EmbeddingTable& table() { return table_; }
  const TableSpec& spec() const { return table_.spec(); }
  const std::vector<TableFeature>& features() const { return features_; }

  /// Host: memory for a batch of so many keys in this buffer. Errors: Error(device).
  void reserve(int buffer, int64_t samples, int64_t keys);
  /// The keys of each feature to this buffer, which has memory for them, and their rows. Queues only, unless rows may
  /// be on a disk: then the host takes part.
  void prepare(Context&, int buffer, int64_t samples, std::span<const ops::FeatureBags>);
  /// Host, once prepare() is queued: EmbeddingTable::confirm_capacity() and enforce_limit().
  void confirm(int buffer);
  void forward(Context&, int buffer, std::span<const PlacedVectors> outputs);
  void weight_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, std::span<float* const> dw);
  void update(Context&, int buffer, std::span<const PlacedVectors> gradients);
  /// Needs update()'s arguments; writes what each row gets, and ends the step without an update.
  void list_row_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, const RowGradients&);
  /// Host: how many rows that were. Waits.
  int64_t rows_of_batch(int buffer);
  void release(Context& ctx, int buffer) { table_.leave_unchanged(ctx, buffer); }
  /// Vectors of keys that have rows, without a batch. Host and device.
  void reserve_lookup(int64_t samples, int64_t keys);
  void lookup(Context&, int64_t samples, std::span<const ops::FeatureBags>, std::span<const PlacedVectors> outputs);

 private:
  /// The keys of a batch, and its lists.
  struct Input {
    int64_t samples = 0, keys = 0;  // that it has memory for
    Arena arena{};
    int64_t* of_keys = nullptr;  // [keys]
    int32_t* offsets = nullptr;  // [features * samples + 1]
    float* weights = nullptr;    // [keys], of a table with weighted features
    int32_t* numbers = nullptr;  // [keys] 0, 1, 2, ...; of a table that is not plain
    float* gradients = nullptr;  // [keys, dim] likewise; of a plain one [samples, features, dim]
    int32_t* chosen = nullptr;   // [samples, dim] for each feature with max
    // Of the batch:
    int64_t batch_samples = 0, batch_keys = 0;
    std::vector<int64_t> most;  // keys of each feature
  };
  void allocate(Input&, int64_t samples, int64_t keys);
  void place(Context&, Input&, int64_t samples, std::span<const ops::FeatureBags>);
  Tensor keys_of(const Input&) const;
  Tensor offsets_of(const Input&) const;
  ops::BagList bags_of(const Input&, size_t feature, const int32_t* rows) const;
  int32_t* chosen_of(const Input&, size_t feature) const;
  void pool(Context&, const EmbeddingTable::Batch&, const Input&, std::span<const PlacedVectors>);
  /// The vectors of all features as one tensor [samples, features, dim], if they lie side by side.
  std::optional<Tensor> side_by_side(const Input&, std::span<const PlacedVectors>) const;
  Tensor vectors_of(const Input&, size_t feature, const PlacedVectors&) const;
  /// The gradients as the table takes them: of vectors, or a list of those of keys.
  Tensor gradients_of(Context&, int buffer, std::span<const PlacedVectors>);

  Runtime& runtime_;
  std::vector<TableFeature> features_;
  bool plain_, weighted_;
  EmbeddingTable table_;
  std::vector<Input> inputs_;  // [buffer]
  Input lookup_;
};

}  // namespace hctr
