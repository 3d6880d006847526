#include "core/device/launch.cuh"
#include "ops/embedding/embedding_vector.cuh"
#include "ops/embedding/listed_vectors.h"

namespace hctr::ops {
namespace {

/// Copies one vector per group of lanes, in the widest word type that fits.
template <class W>
__global__ void copy_listed_kernel(ListedVectors from, ListedVectors to, int64_t count, int64_t bytes, int lanes) {
  const Group group(lanes);
  const int64_t words = bytes / static_cast<int64_t>(sizeof(W));
  for (int64_t i = group.index; i < count; i += group.count) {
    const W* source = reinterpret_cast<const W*>(from.at(i, bytes));
    W* target = reinterpret_cast<W*>(to.at(i, bytes));
    for (int64_t w = group.lane; w < words; w += lanes) target[w] = source[w];
  }
}

}  // namespace

void cuda::copy_listed(Context& ctx, ListedVectors from, ListedVectors to, int64_t count, int64_t bytes) {
  const auto all = reinterpret_cast<uintptr_t>(from.vectors) | reinterpret_cast<uintptr_t>(to.vectors) |
                   static_cast<uintptr_t>(bytes);
  const auto start = [&]<class W>(W) {
    const int lanes = lanes_for(bytes / static_cast<int64_t>(sizeof(W)), 1);
    hctr::cuda::launch(ctx, "copy_listed", hctr::cuda::grid_for(count * lanes), copy_listed_kernel<W>, from, to, count,
                       bytes, lanes);
  };
  if (all % 16 == 0) return start(uint4{});
  if (all % 8 == 0) return start(uint2{});
  if (all % 4 == 0) return start(uint32_t{});
  start(uint16_t{});
}

}  // namespace hctr::ops
