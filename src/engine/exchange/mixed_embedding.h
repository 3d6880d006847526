// An embedding with replicated rows for some small slots; the rows of the other slots have owner ranks.
#pragma once

#include <functional>
#include <vector>

#include "engine/exchange/partly_replicated.h"

namespace hctr {

/// Two tables that write and read different columns of the vectors. The slots of the replicated table need no exchange.
class MixedEmbedding : public PartlyReplicated {
 public:
  /// `spec` must have direct keys by slot.
  MixedEmbedding(Runtime&, Communicator&, const Placement&, const TableSpec& spec, int ring_size,
                 const EmbeddingOutputs&);

  bool reserve_memory() override;
  void reserve_rows(int64_t step) override;
  void check_keys() override;
  void send_keys(Context&, Recording*, int buffer, Tensor keys, Tensor offsets) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  int64_t rows() override { return others_.rows() + replicated_.table().rows(); }
  void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) override;
  void import_rows(const RowBlock&) override;

  /// Passes the replicated rows of this rank to `sink`, sorted by (slot, key).
  void export_replica(const std::function<void(const RowBlock&)>& sink) { replicated_.table().export_rows(true, sink); }

 private:
  std::vector<bool> on_every_rank_;  // [slots]
};

}  // namespace hctr
