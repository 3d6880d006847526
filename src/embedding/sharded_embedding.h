// An embedding whose rows are spread over the ranks: a table of this rank's rows behind an exchange.
#pragma once

#include "embedding/embedding.h"
#include "embedding/exchange.h"

namespace hctr {

class ShardedEmbedding : public Embedding {
 public:
  ShardedEmbedding(Runtime&, Communicator&, Placement, TableSpec spec, const std::vector<int64_t>& slot_keys, int ring_slots);

  void prepare(Context&, int slot, Tensor keys, Tensor offsets) override;
  void forward(Context&, int slot, Tensor y) override;
  void backward_and_update(Context&, int slot, Tensor dy) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  const TableSpec& spec() const override { return spec_; }
  int64_t rows() override;
  std::map<std::string, int64_t> counts() override;
  bool uses_shared_row() override;
  void export_rows(bool with_states, const std::function<void(const RowBlock&)>& take) override;
  void import_rows(const RowBlock&) override;

 protected:
  EmbeddingTable& table() override { return table_; }

 private:
  int64_t over_all_ranks(int64_t mine);

  Communicator& comm_;
  Placement placement_;
  TableSpec spec_;
  Exchange train_, evaluation_;
  EmbeddingTable table_;
};

}  // namespace hctr
