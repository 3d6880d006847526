// An embedding with replicated rows for hot keys; all other rows have owner ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/exchange/frequent_keys.h"
#include "engine/exchange/partly_replicated.h"
#include "engine/table/gather_rows.h"

namespace hctr {

/// Frequent keys are read from a file, or found by counting. To count, the owners count the occurrences of keys in the
/// first steps. Then, between two steps, the most frequent rows are copied with their states to every rank, as far as
/// replication pays. From then on the replicated row is the valid copy and replaces the owner's copy in files. Files
/// and row counts equal those of a table without frequent rows.
class HybridEmbedding : public PartlyReplicated {
 public:
  /// Errors: those of read_frequent_keys(); Error(data) if a key of the file cannot exist in the table.
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size, const EmbeddingOutputs&);

  void reserve_rows(int64_t step) override;
  bool consume_rerecord_flag() override { return std::exchange(changed_, false); }
  void send_keys(Context&, Recording*, int buffer, Tensor keys, Tensor offsets) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  int64_t rows() override;
  void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) override;
  void import_rows(const RowBlock&) override;
  void save_state(StateWriter) override;

  /// Passes to `sink` those replicated rows of this rank whose keys have occurred, sorted by (slot, key).
  void export_replica(const std::function<void(const RowBlock&)>& sink) { replicated_.export_rows(sink); }

 protected:
  void load_exactly(const StateReader&) override;
  void load_by_key(const StateReader&) override;

 private:
  HybridEmbedding(Runtime&, Communicator&, ShardedRows, int ring_size, const EmbeddingOutputs&, FrequentKeys);
  /// Replicates the most frequent rows of all ranks, as far as replication pays.
  void find_frequent();
  /// If a row occurs at least this often in a batch of all ranks, replicating the row needs less communication than
  /// exchanging it.
  int64_t least_occurrences() const;
  /// On rank 0: the replicated rows whose keys have occurred, sorted by (slot, key). Empty on other ranks.
  RowCopies frequent_rows(RowsToExport wanted);

  int64_t steps_left_;  // steps until the search for frequent keys; -1: no search
  bool changed_ = false;
  int64_t most_rows_;  // maximum number of replicated rows
  bool have_owners_;   // whether `others_` has a row, with outdated values, for each replicated row
};

}  // namespace hctr
