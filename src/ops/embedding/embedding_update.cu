#include "ops/embedding/embedding_update.cuh"

namespace hctr::ops::cuda {

void sum_long_runs(Context& ctx, KeyBatch batch, RowGroups groups, Combiner combiner, Tensor dy, float* piece_sums) {
  dispatch_gradients<PlainRows>(
      batch, groups, combiner, dy, [&]<class Dy, int Width>(const BagGradients<Dy, Width>& gradients, int lanes) {
        const int64_t pieces = RowGroups::most_pieces(batch.key_capacity),
                      runs = RowGroups::most_long_runs(batch.key_capacity);
        // Blocks without work take time, too. If several tables share a launch, each table therefore gets fewer blocks:
        // one group of lanes instead of one block for each long run. Most tables have few long runs.
        const bool several = ctx.queue() && ctx.queue()->several();
        const int64_t blocks =
            grid_for(pieces * lanes, kPieceThreads, blocks_of_device(several ? 2 : 2 * kBlocksEach)).blocks;
        const int64_t run_blocks = several ? grid_for(runs * lanes, kUpdateThreads, blocks_of_device(1)).blocks
                                           : std::min(runs, blocks_of_device(kRunBlocksEach));
        const auto sum_pieces_of = [&]<int kAtOnce>() {
          launch_lockstep<sum_pieces<kAtOnce, Dy, Width>, kPieceThreads>(ctx, "sum_pieces", blocks, gradients, groups,
                                                                         piece_sums, lanes);
        };
        if (blocks < blocks_of_device(2))
          sum_pieces_of.template operator()<16>();
        else
          sum_pieces_of.template operator()<8>();
        launch_lockstep<sum_runs<Width>, kUpdateThreads>(ctx, "sum_runs", run_blocks, groups, piece_sums, dy.dim(2),
                                                         lanes);
      });
}

void update_rows(Context& ctx, const Optimizer& optimizer, KeyBatch batch, RowGroups groups, Combiner combiner,
                 Tensor dy, const float* piece_sums, RowData data) {
  if (data.all_f32())
    update_rows_of<PlainRows>(ctx, optimizer, batch, groups, combiner, dy, piece_sums, data);
  else
    update_rounded_rows(ctx, optimizer, batch, groups, combiner, dy, piece_sums, data);
}

void sum_row_gradients(Context& ctx, KeyBatch batch, RowGroups groups, Combiner combiner, Tensor dy,
                       const float* piece_sums, Tensor sums) {
  const RowData data = rows_of_sums(sums);
  const Optimizer none;
  dispatch_gradients<PlainRows>(batch, groups, combiner, dy,
                                [&]<class Dy, int Width>(const BagGradients<Dy, Width>& gradients, int lanes) {
                                  launch_lockstep<update_runs<StoreGradientRule, PlainRows, Dy, Width>, kUpdateThreads>(
                                      ctx, "take_runs", update_blocks(batch.key_capacity, lanes, false), none,
                                      ctx.state(), gradients, groups, piece_sums, data, lanes);
                                });
}

}  // namespace hctr::ops::cuda
