// Instantiates the update kernels for two-byte elements, which are rounded stochastically.
#include "ops/embedding/embedding_update.cuh"

namespace hctr::ops::cuda {

void update_rounded_rows(Context& ctx, const Optimizer& optimizer, const KeyBatch& batch, const RowGroups& groups,
                         Combiner combiner, const Tensor& dy, const float* piece_sums, const RowData& data) {
  update_rows_of<RoundedRows>(ctx, optimizer, batch, groups, combiner, dy, piece_sums, data);
}

void sweep_rounded_rows(Context& ctx, const Optimizer& optimizer, const uint32_t* rows, const RowData& data) {
  sweep_rows_of<RoundedRows>(ctx, optimizer, rows, data);
}

}  // namespace hctr::ops::cuda
