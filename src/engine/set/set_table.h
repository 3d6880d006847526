// One table of an EmbeddingSet: its features, the memory of its batches, and the calls of a step for all features.
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

/// A table is "plain" if all its features use the same pooling and no weights. A plain table processes its features as
/// the slots of one batch, and reads and writes contiguous vectors and gradients in place. A table that is not plain
/// pools its features one by one, and stores a gradient for every key in a list.
class SetTable {
 public:
  /// Errors: Error(device).
  SetTable(Runtime&, const TableSpec&, std::vector<TableFeature>, int batches);

  EmbeddingTable& table() { return table_; }
  const TableSpec& spec() const { return table_.spec(); }
  const std::vector<TableFeature>& features() const { return features_.all; }

  /// Reserves memory for a batch of `keys` keys in this buffer. Runs on the host. Errors: Error(device).
  void reserve(int buffer, int64_t samples, int64_t keys);
  /// Copies the keys of each feature to this buffer, whose memory must be reserved, and looks up their rows. Only
  /// queues work, unless rows may be on disk, which needs the host. `rows`: the row numbers of each feature's keys, as
  /// read_rows() writes them. If `rows` is empty, prepare() looks up the keys.
  void prepare(Context&, int buffer, int64_t samples, std::span<const ops::FeatureBags>,
               std::span<const int32_t* const> rows = {});
  /// Writes the row numbers of each feature's keys.
  void read_rows(Context&, int buffer, std::span<int32_t* const> to);
  /// Calls EmbeddingTable::confirm_capacity() and enforce_limit(). Runs on the host, after prepare() is queued.
  void confirm(int buffer);
  void forward(Context&, int buffer, std::span<const PlacedVectors> outputs);
  void weight_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, std::span<float* const> dw);
  void update(Context&, int buffer, std::span<const PlacedVectors> gradients);
  /// Takes the arguments of update(), but writes the gradient of each row to `RowGradients`. A step that calls this
  /// function must end with update() or release().
  void list_row_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, const RowGradients&);
  /// Writes the number of distinct rows of the batch to page-locked host memory.
  void report_rows_of_batch(Context&, int buffer, int32_t* host);
  void release(Context& ctx, int buffer) { table_.leave_unchanged(ctx, buffer); }
  /// lookup() returns the vectors of keys that have rows, and needs no batch. reserve_lookup() reserves the memory of
  /// lookup().
  void reserve_lookup(int64_t samples, int64_t keys);
  bool lookup_reserved(int64_t samples, int64_t keys) const;
  /// From now on keeps memory that reserve() replaces, because recorded work uses its addresses. Runs on the host
  /// during recording.
  void keep_replaced_memory();
  void lookup(Context&, int64_t samples, std::span<const ops::FeatureBags>, std::span<const PlacedVectors> outputs);

 private:
  void reserve_input(SetInput&, int64_t samples, int64_t keys);
  Tensor keys_of(const SetInput&) const;
  Tensor offsets_of(const SetInput&) const;
  void pool(Context&, const EmbeddingTable::Batch&, const SetInput&, std::span<const PlacedVectors>);
  /// If the vectors of all features are contiguous, returns them as one tensor [samples, features, dim]; otherwise
  /// returns nullopt.
  std::optional<Tensor> side_by_side(const SetInput&, std::span<const PlacedVectors>) const;
  /// The gradients as the table needs them. Plain table: [samples, features, dim]. Other tables: a list of key
  /// gradients.
  Tensor gradients_of(Context&, int buffer, std::span<const PlacedVectors>);

  Runtime& runtime_;
  TableFeatures features_;
  EmbeddingTable table_;
  std::vector<SetInput> inputs_;  // [buffer]
  SetInput lookup_;
  // replaced memory that recorded work uses; nullopt: nothing was recorded
  std::optional<std::vector<SetInput>> replaced_;
};

}  // namespace hctr
