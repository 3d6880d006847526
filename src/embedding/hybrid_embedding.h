// An embedding whose frequent rows are on every rank and whose other rows have owners.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "embedding/frequent_keys.h"
#include "embedding/gather_rows.h"
#include "embedding/partly_replicated.h"

namespace hctr {

/// Which keys are frequent is known from a file, or found: the owners count what comes in the first steps, and between
/// two steps those rows that came often enough to pay, the most frequent first, are put on every rank, with their
/// states. From then on theirs are the rows that count: they take the places of their owners' in files, so that these,
/// and numbers of rows, are those of a table without frequent rows.
class HybridEmbedding : public PartlyReplicated {
 public:
  /// Errors: those of read_frequent_keys(); Error(data) when a key of the file is none that the table can have.
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size, const EmbeddingOutputs&);

  void reserve_rows(int64_t step) override;
  bool consume_rerecord_flag() override { return std::exchange(changed_, false); }
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  int64_t rows() override;
  void export_rows(bool with_states, const std::function<void(const RowBlock&)>& sink) override;
  void import_rows(const RowBlock&) override;

  /// The rows of this rank's replica that have come, in the order of (slot, key).
  void export_replica(const std::function<void(const RowBlock&)>& sink) { replicated_.export_rows(sink); }

 private:
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size, const EmbeddingOutputs&,
                  FrequentKeys);
  /// The most frequent rows of all ranks become frequent ones, of those that come so often that it pays.
  void find_frequent();
  /// Occurrences in a batch of all ranks from which on less travels for a row that every rank has.
  int64_t least_occurrences() const;
  /// Frequent rows as they come in the order of (slot, key), on rank 0.
  RowCopies frequent_rows(bool with_states);

  int64_t steps_left_;  // until frequent rows are found
  bool changed_ = false;
  int64_t most_rows_;  // of them
  bool have_owners_;   // frequent rows are also, as they were, in a table of others_
};

}  // namespace hctr
