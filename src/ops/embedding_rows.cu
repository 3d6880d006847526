#include "device/launch.cuh"
#include "ops/embedding_rows.h"
#include "ops/embedding_vector.cuh"

namespace hctr::ops {
namespace {

/// One thread for four elements: one draw of random bits. The grid is fixed; in most batches few rows are new.
__global__ void init_new_rows_kernel(HashIndex index, RowInit init, RowData data) {
  const int64_t first = int64_t{index.state->ready} + 1, last = min(index.state->rows, index.state->row_capacity);
  const int64_t fours = (data.dim + 3) / 4;
  for (int64_t i = hctr::cuda::thread_index(); i < (last - first + 1) * fours; i += hctr::cuda::thread_count()) {
    const int64_t row = first + i / fours, e = i % fours * 4;
    const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
    const Random4 bits = init.four(index.row_keys[row], slot, e);
    const float bound = init.bound_of(slot);
    float* vector = data.vectors + row * data.dim;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (e + k < data.dim) vector[e + k] = symmetric_float(bits.v[k], bound);
    for (int s = 0; s < kMostStates; ++s)
      if (init.state_start[s] != 0)
        for (int64_t k = e; k < min(e + 4, data.state_dim); ++k) data.states[s][row * data.state_dim + k] = init.state_start[s];
  }
}

/// One group of lanes per row.
template <int Width>
__global__ void gather_rows_kernel(const int32_t* rows, const float* table, int64_t count, int64_t words, float* x, int lanes) {
  const Group group(lanes);
  for (int64_t i = group.index; i < count; i += group.count) {
    const int64_t row = rows[i];
    for (int64_t e = group.lane * Width; e < words; e += lanes * Width)
      *reinterpret_cast<Pack<float, Width>*>(x + i * words + e) = *reinterpret_cast<const Pack<float, Width>*>(table + row * words + e);
  }
}

__global__ void scatter_rows_kernel(const int32_t* rows, const uint32_t* x, int64_t count, int64_t words,
                                    uint32_t* table) {
  for (int64_t i = hctr::cuda::thread_index(); i < count * words; i += hctr::cuda::thread_count())
    if (const int32_t row = rows[i / words]; row != 0) table[row * words + i % words] = x[i];
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

void init_new_rows(Context& ctx, HashIndex index, RowInit init, RowData data) {
  launch(ctx, "init_new_rows", {132 * 4, 256, 0}, init_new_rows_kernel, index, init, data);
}

void gather_rows(Context& ctx, const int32_t* rows, const void* table, Tensor x) {
  const int64_t words = x.row_elements();
  const auto* from = static_cast<const float*>(table);
  auto* to = reinterpret_cast<float*>(x.bytes());
  dispatch_width(splits_by_four(table, sizeof(float), words, words) && splits_by_four(to, sizeof(float), words, words), [&]<int Width>() {
    const int lanes = lanes_for(words, Width);
    launch(ctx, "gather_rows", grid_for(x.rows() * lanes), gather_rows_kernel<Width>, rows, from, x.rows(), words, to, lanes);
  });
}

void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, void* table) {
  launch(ctx, "scatter_rows", grid_for(x.elements()), scatter_rows_kernel, rows,
         reinterpret_cast<const uint32_t*>(x.bytes()), x.rows(), x.row_elements(), static_cast<uint32_t*>(table));
}

}  // namespace cuda
}  // namespace hctr::ops
