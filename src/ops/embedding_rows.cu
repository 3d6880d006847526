#include "device/launch.cuh"
#include "ops/embedding_rows.h"

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

__global__ void gather_rows_kernel(const int32_t* rows, const uint32_t* table, int64_t count, int64_t words,
                                   uint32_t* x) {
  for (int64_t i = hctr::cuda::thread_index(); i < count * words; i += hctr::cuda::thread_count())
    x[i] = table[rows[i / words] * words + i % words];
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
  launch(ctx, "gather_rows", grid_for(x.elements()), gather_rows_kernel, rows, static_cast<const uint32_t*>(table),
         x.rows(), x.row_elements(), reinterpret_cast<uint32_t*>(x.bytes()));
}

void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, void* table) {
  launch(ctx, "scatter_rows", grid_for(x.elements()), scatter_rows_kernel, rows,
         reinterpret_cast<const uint32_t*>(x.bytes()), x.rows(), x.row_elements(), static_cast<uint32_t*>(table));
}

}  // namespace cuda
}  // namespace hctr::ops
