// Kernels that gather and scatter records: a warp per record copies one part after the other, in the widest words that
// all addresses allow.
#include "core/device/launch.cuh"
#include "ops/embedding/row_records.h"

namespace hctr::ops {
namespace {

template <class Word>
__device__ void copy_part_words(const std::byte* from, std::byte* to, int64_t bytes) {
  const int64_t words = bytes / static_cast<int64_t>(sizeof(Word));
  for (int64_t i = threadIdx.x % 32; i < words; i += 32)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(from)[i];
}

__device__ void copy_part(const std::byte* from, std::byte* to, int64_t bytes) {
  const uint64_t all = reinterpret_cast<uint64_t>(from) | reinterpret_cast<uint64_t>(to) | static_cast<uint64_t>(bytes);
  if (all % 16 == 0)
    copy_part_words<uint4>(from, to, bytes);
  else if (all % 4 == 0)
    copy_part_words<uint32_t>(from, to, bytes);
  else if (all % 2 == 0)
    copy_part_words<uint16_t>(from, to, bytes);
  else
    copy_part_words<uint8_t>(from, to, bytes);
}

__global__ void gather_records_kernel(const __grid_constant__ RecordParts parts, const int32_t* rows, int64_t count) {
  for (int64_t i = hctr::cuda::thread_index() / 32; i < count; i += hctr::cuda::thread_count() / 32)
    for (int p = 0; p < parts.count; ++p) {
      const RecordPart& part = parts.parts[p];
      copy_part(part.column + rows[i] * part.bytes, part.first + i * part.stride, part.bytes);
    }
}

__global__ void scatter_records_kernel(const __grid_constant__ RecordParts parts, const int32_t* rows, int64_t count) {
  for (int64_t i = hctr::cuda::thread_index() / 32; i < count; i += hctr::cuda::thread_count() / 32)
    for (int p = 0; p < parts.count; ++p) {
      const RecordPart& part = parts.parts[p];
      copy_part(part.first + i * part.stride, part.column + rows[i] * part.bytes, part.bytes);
    }
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

void gather_records(Context& ctx, RecordParts parts, const int32_t* rows, int64_t count) {
  launch(ctx, "gather_records", grid_for(count * 32), gather_records_kernel, parts, rows, count);
}

void scatter_records(Context& ctx, RecordParts parts, const int32_t* rows, int64_t count) {
  launch(ctx, "scatter_records", grid_for(count * 32), scatter_records_kernel, parts, rows, count);
}

}  // namespace cuda
}  // namespace hctr::ops
