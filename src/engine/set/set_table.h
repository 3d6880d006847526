// One table of an EmbeddingSet: its features, the memory of its batches, and the calls of a step for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/set/set_input.h"
#include "engine/table/table.h"
#include "hctr/embedding.h"

namespace hctr {

/// If all features are pooled alike, without weights, they are the slots of one batch, whose vectors and gradients the
/// table accesses in place if they are contiguous (a "plain" table). Otherwise features are pooled one by one, and
/// every key has a separate gradient in a list.
class SetTable {
 public:
  /// Errors: Error(device).
  SetTable(Runtime&, const TableSpec&, std::vector<TableFeature>, int batches);

  EmbeddingTable& table() { return table_; }
  const TableSpec& spec() const { return table_.spec(); }
  const std::vector<TableFeature>& features() const { return features_.all; }

  /// On the host: reserves memory for a batch of `keys` keys in this buffer. Errors: Error(device).
  void reserve(int buffer, int64_t samples, int64_t keys);
  /// Copies the keys of each feature to this buffer, which has memory for them, and finds their rows. Only queues work,
  /// unless rows may be on disk: then the host takes part.
  void prepare(Context&, int buffer, int64_t samples, std::span<const ops::FeatureBags>);
  /// On the host, once prepare() is queued: EmbeddingTable::confirm_capacity() and enforce_limit().
  void confirm(int buffer);
  void forward(Context&, int buffer, std::span<const PlacedVectors> outputs);
  void weight_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, std::span<float* const> dw);
  void update(Context&, int buffer, std::span<const PlacedVectors> gradients);
  /// Needs update()'s arguments; writes what each row gets. update() or release() ends the step.
  void list_row_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, const RowGradients&);
  /// On the host: the number of these rows. Waits.
  int64_t rows_of_batch(int buffer);
  void release(Context& ctx, int buffer) { table_.leave_unchanged(ctx, buffer); }
  /// Vectors of keys that have rows, without a batch. On host and device.
  void reserve_lookup(int64_t samples, int64_t keys);
  bool lookup_reserved(int64_t samples, int64_t keys) const;
  /// On the host, while work is recorded: keeps memory that is replaced from then on, since that work points to it.
  void keep_replaced_memory();
  void lookup(Context&, int64_t samples, std::span<const ops::FeatureBags>, std::span<const PlacedVectors> outputs);

 private:
  void reserve_input(SetInput&, int64_t samples, int64_t keys);
  Tensor keys_of(const SetInput&) const;
  Tensor offsets_of(const SetInput&) const;
  void pool(Context&, const EmbeddingTable::Batch&, const SetInput&, std::span<const PlacedVectors>);
  /// The vectors of all features as one tensor [samples, features, dim], if they are contiguous.
  std::optional<Tensor> side_by_side(const SetInput&, std::span<const PlacedVectors>) const;
  /// The gradients in the table's form: of vectors, or a list of gradients of keys.
  Tensor gradients_of(Context&, int buffer, std::span<const PlacedVectors>);

  Runtime& runtime_;
  TableFeatures features_;
  EmbeddingTable table_;
  std::vector<SetInput> inputs_;  // [buffer]
  SetInput lookup_;
  // replaced memory that recorded work uses; none: nothing was recorded
  std::optional<std::vector<SetInput>> replaced_;
};

}  // namespace hctr
