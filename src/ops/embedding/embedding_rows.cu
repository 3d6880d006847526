#include "core/device/launch.cuh"
#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/embedding_vector.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;

/// Stores x in element `at` of an array, rounded to nearest.
__device__ void store_nearest(const RowMemory& memory, int64_t at, float x) {
  switch (memory.dtype) {
    case DType::f16:
      memory.as<Half>()[at] = rounded_to_nearest<Half>(x);
      break;
    case DType::bf16:
      memory.as<BFloat16>()[at] = rounded_to_nearest<BFloat16>(x);
      break;
    default:
      memory.as<float>()[at] = x;
  }
}

/// Writes the initial values of elements e to e + 3 of a row.
__device__ void fill_four(const RowInit& init, const RowData& data, int64_t row, int64_t e) {
  const RowOwner owner = data.identity.of(row);
  const Random4 bits = init.four(owner.key, owner.slot, e);
  const float bound = init.bound_of(owner.slot);
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (e + k < data.dim) store_nearest(data.vectors, row * data.dim + e + k, init.value(bits.v[k], bound));
  for (int s = 0; s < kMostStates; ++s)
    if (init.writes(s, data.states[s]))
      for (int64_t k = e; k < min(e + 4, data.state_dim); ++k)
        store_nearest(data.states[s], row * data.state_dim + k, init.state_start[s]);
}

/// Initializes new rows: one thread per four elements, because a Philox draw decides four elements. The grid size is
/// fixed; most batches have few new rows.
__device__ void fill_new_rows(BlockRange range, HashIndex index, RowInit init, RowData data) {
  const int64_t first = int64_t{index.state->ready} + 1, last = min(index.state->rows, index.state->row_capacity);
  const int64_t fours = (data.dim + 3) / 4;
  for (int64_t i = range.thread_index(); i < (last - first + 1) * fours; i += range.thread_count())
    fill_four(init, data, first + i / fours, i % fours * 4);
}

__global__ void init_rows_kernel(const int32_t* rows, int64_t count, RowInit init, RowData data) {
  const int64_t fours = (data.dim + 3) / 4;
  for (int64_t i = hctr::cuda::thread_index(); i < count * fours; i += hctr::cuda::thread_count())
    fill_four(init, data, rows[i / fours], i % fours * 4);
}

/// Converts From to To. Equal types are copied bit for bit.
template <class To, class From>
__device__ To converted(From x) {
  if constexpr (std::is_same_v<To, From>)
    return x;
  else if constexpr (std::is_same_v<To, float>)
    return static_cast<float>(x);
  else
    return rounded_to_nearest<To>(x);
}

/// Gathers rows: one group of lanes per row.
template <class T, class Stored, int Width>
__global__ void gather_rows_kernel(const int32_t* rows, const Stored* table, int64_t count, int64_t words, T* x,
                                   int lanes) {
  const Group group(lanes);
  for (int64_t i = group.index; i < count; i += group.count) {
    const int64_t row = rows[i];
    for (int64_t e = group.lane * Width; e < words; e += lanes * Width) {
      const auto from = *reinterpret_cast<const Pack<Stored, Width>*>(table + row * words + e);
      Pack<T, Width> to;
#pragma unroll
      for (int k = 0; k < Width; ++k) to.v[k] = converted<T>(from.v[k]);
      *reinterpret_cast<Pack<T, Width>*>(x + i * words + e) = to;
    }
  }
}

template <class T, class Stored>
__global__ void scatter_rows_kernel(const int32_t* rows, const T* x, int64_t count, int64_t words, Stored* table) {
  for (int64_t i = hctr::cuda::thread_index(); i < count * words; i += hctr::cuda::thread_count())
    if (const int32_t row = rows[i / words]; row != 0) table[row * words + i % words] = converted<Stored>(x[i]);
}

template <class Word>
__global__ void copy_rows_kernel(const int32_t* rows, int64_t count, const Word* column, int64_t words, Word* to) {
  for (int64_t i = hctr::cuda::thread_index(); i < count * words; i += hctr::cuda::thread_count())
    to[i] = column[rows[i / words] * words + i % words];
}

template <class Word>
void copy_words(Context& ctx, const int32_t* rows, int64_t count, const void* column, int64_t bytes, void* to) {
  const int64_t words = bytes / static_cast<int64_t>(sizeof(Word));
  hctr::cuda::launch(ctx, "copy_rows", hctr::cuda::grid_for(count * words), copy_rows_kernel<Word>, rows, count,
                     static_cast<const Word*>(column), words, static_cast<Word*>(to));
}

/// Calls body.operator()<T, Stored>() with the element types of the dense copy and of the table. Four-byte elements are
/// copied as u32.
template <class Body>
void dispatch_stored(DType stored, Body&& body) {
  if (size_of(stored) == 4) return body.template operator()<uint32_t, uint32_t>();
  dispatch_float(stored, [&]<class Stored>() { body.template operator()<float, Stored>(); });
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::launch_lockstep;

void init_new_rows(Context& ctx, HashIndex index, RowInit init, RowData data) {
  // Blocks without work take time too: with 26 tables, 4 blocks per multiprocessor of each took a quarter of the GPU's
  // time for a batch of 2,048 keys.
  constexpr int64_t kBlocksOfOneOfSeveral = 32;
  const bool several = ctx.queue() && ctx.queue()->several();
  launch_lockstep<fill_new_rows, 256>(
      ctx, "init_new_rows", several ? kBlocksOfOneOfSeveral : hctr::cuda::blocks_of_device(4), index, init, data);
}

void init_rows(Context& ctx, const int32_t* rows, int64_t count, RowInit init, RowData data) {
  launch(ctx, "init_rows", grid_for(count * ((data.dim + 3) / 4)), init_rows_kernel, rows, count, init, data);
}

void gather_rows(Context& ctx, const int32_t* rows, RowMemory table, Tensor x) {
  const int64_t words = x.row_elements();
  dispatch_stored(table.dtype, [&]<class T, class Stored>() {
    const auto* from = table.as<const Stored>();
    auto* to = reinterpret_cast<T*>(x.bytes());
    dispatch_width(splits_by(4, from, sizeof(Stored), words, words) && splits_by(4, to, sizeof(T), words, words),
                   [&]<int Width>() {
                     const int lanes = lanes_for(words, Width);
                     launch(ctx, "gather_rows", grid_for(x.rows() * lanes), gather_rows_kernel<T, Stored, Width>, rows,
                            from, x.rows(), words, to, lanes);
                   });
  });
}

void scatter_rows(Context& ctx, const int32_t* rows, Tensor x, RowMemory table) {
  dispatch_stored(table.dtype, [&]<class T, class Stored>() {
    launch(ctx, "scatter_rows", grid_for(x.elements()), scatter_rows_kernel<T, Stored>, rows,
           reinterpret_cast<const T*>(x.bytes()), x.rows(), x.row_elements(), table.as<Stored>());
  });
}

void copy_rows(Context& ctx, const int32_t* rows, int64_t count, const void* column, int64_t bytes, void* to) {
  if (bytes % 16 == 0)
    copy_words<uint4>(ctx, rows, count, column, bytes, to);
  else if (bytes % 4 == 0)
    copy_words<uint32_t>(ctx, rows, count, column, bytes, to);
  else
    copy_words<uint16_t>(ctx, rows, count, column, bytes, to);
}

}  // namespace cuda
}  // namespace hctr::ops
