// Rows without a gradient, whose states move them nevertheless. Rows in f32 are taken as one array, in packs of four
// elements whatever the length of a row, so that all accesses are whole and as many are under way as in a copy.
#include "ops/embedding/embedding_update.cuh"

namespace hctr::ops::cuda {
namespace {

constexpr int kSweepPack = 4;

/// Elements [begin, end) of all arrays; a pack lies in up to four rows.
template <class Rule>
__global__ void __launch_bounds__(kUpdateThreads)
    sweep_elements_kernel(Optimizer optimizer, const StepState* state, const uint32_t* last_row, RowData data) {
  if (state->skip) return;
  const UpdateScalars scalars = block_scalars<Rule>(optimizer, state);
  const int64_t begin = data.dim, end = (int64_t{*last_row} + 1) * data.dim;
  bool finite = true;
  for (int64_t at = begin / kSweepPack * kSweepPack + hctr::cuda::thread_index() * kSweepPack; at < end;
       at += hctr::cuda::thread_count() * kSweepPack) {
    bool mine[kSweepPack], any = false;
    const bool inside = at >= begin && at + kSweepPack <= end;
    int64_t row = at <= UINT32_MAX ? static_cast<uint32_t>(at) / static_cast<uint32_t>(data.dim) : at / data.dim;
    int64_t next = (row + 1) * data.dim;
    bool untouched = row > 0 && data.touched[row] == 0;
#pragma unroll
    for (int i = 0; i < kSweepPack; ++i) {
      if (at + i == next && at + i < end) {
        untouched = data.touched[++row] == 0;
        next += data.dim;
      }
      mine[i] = untouched && at + i < end;
      any = any || mine[i];
    }
    if (!any) continue;
    Fragment<kSweepPack> w = load_fragment<kSweepPack>(data.vectors.as<const float>() + at), s[kMostStates]{};
#pragma unroll
    for (int n = 0; n < Rule::kStates; ++n) s[n] = load_fragment<kSweepPack>(data.states[n].as<const float>() + at);
#pragma unroll
    for (int i = 0; i < kSweepPack; ++i) {
      if (!mine[i]) continue;
      float of_element[kMostStates];
#pragma unroll
      for (int n = 0; n < kMostStates; ++n) of_element[n] = s[n].v[i];
      Rule::update(optimizer, scalars, 0.0f, w.v[i], of_element);
      finite = finite && left_finite<Rule>(w.v[i], of_element);
#pragma unroll
      for (int n = 0; n < kMostStates; ++n) s[n].v[i] = of_element[n];
    }
    // Rows behind the last may be made at this moment, for the next batch.
    const auto store = [&](const RowMemory& memory, const Fragment<kSweepPack>& part) {
      if (inside) return store_fragment<kSweepPack>(memory.as<float>() + at, part);
#pragma unroll
      for (int i = 0; i < kSweepPack; ++i)
        if (mine[i]) memory.as<float>()[at + i] = part.v[i];
    };
    store(data.vectors, w);
#pragma unroll
    for (int n = 0; n < Rule::kStates; ++n) store(data.states[n], s[n]);
  }
  report_spoiled(finite, state);
}

/// After all rows have been swept. Rows are marked again by the next update.
__global__ void clear_touched_kernel(const StepState* state, const uint32_t* last_row, uint8_t* touched) {
  if (state->skip) return;
  const int64_t last = *last_row;
  for (int64_t first = hctr::cuda::thread_index() * 4; first <= last; first += hctr::cuda::thread_count() * 4) {
    if (first > 0 && first + 3 <= last) {
      *reinterpret_cast<uint32_t*>(touched + first) = 0;
      continue;
    }
    for (int64_t row = first > 0 ? first : 1; row <= last && row < first + 4; ++row) touched[row] = 0;
  }
}

}  // namespace

void sweep_rows(Context& ctx, const Optimizer& optimizer, const uint32_t* rows, RowData data) {
  if (!data.all_f32() || data.state_dim != data.dim) return sweep_rounded_rows(ctx, optimizer, rows, data);
  dispatch_rule(optimizer.kind, [&]<class Rule>() {
    launch(ctx, "sweep_rows", Grid{blocks_of_device(kBlocksEach), kUpdateThreads, 0}, sweep_elements_kernel<Rule>,
           optimizer, ctx.state(), rows, data);
  });
  launch(ctx, "clear_touched", Grid{blocks_of_device(2), kUpdateThreads, 0}, clear_touched_kernel, ctx.state(), rows,
         data.touched);
}

}  // namespace hctr::ops::cuda
