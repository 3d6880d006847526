// An embedding whose hot keys have replicated rows, and whose other rows have owners.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/exchange/frequent_keys.h"
#include "engine/exchange/partly_replicated.h"
#include "engine/table/gather_rows.h"

namespace hctr {

/// The frequent keys are read from a file, or found: the owners count the occurrences of keys in the first steps. Then,
/// between two steps, the rows for which replication pays are copied to every rank with their states, the most frequent
/// first. From then on the replicated row is the valid one and replaces its owner's in files, so that files and row
/// counts are those of a table without frequent rows.
class HybridEmbedding : public PartlyReplicated {
 public:
  /// Errors: those of read_frequent_keys(); Error(data) when a key of the file is impossible in the table.
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size, const EmbeddingOutputs&);

  void reserve_rows(int64_t step) override;
  bool consume_rerecord_flag() override { return std::exchange(changed_, false); }
  void send_keys(Context&, Recording*, int buffer, Tensor keys, Tensor offsets) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  int64_t rows() override;
  void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) override;
  void import_rows(const RowBlock&) override;
  void save_state(StateWriter) override;

  /// The replicated rows of this rank that have occurred, in the order of (slot, key).
  void export_replica(const std::function<void(const RowBlock&)>& sink) { replicated_.export_rows(sink); }

 protected:
  void load_exactly(const StateReader&) override;
  void load_by_key(const StateReader&) override;

 private:
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size, const EmbeddingOutputs&,
                  FrequentKeys);
  /// Replicates the most frequent rows of all ranks, as far as replication pays.
  void find_frequent();
  /// The minimum number of occurrences in a batch of all ranks for which a replicated row needs less communication.
  int64_t least_occurrences() const;
  /// On rank 0 the replicated rows that have occurred, in the order of (slot, key).
  RowCopies frequent_rows(RowsToExport wanted);

  int64_t steps_left_;  // until frequent keys are searched for
  bool changed_ = false;
  int64_t most_rows_;  // limit of replicated rows
  bool have_owners_;   // replicated rows also have an outdated copy in others_
};

}  // namespace hctr
