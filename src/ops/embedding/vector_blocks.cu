#include "core/device/launch.cuh"
#include "ops/embedding/vector_blocks.h"

namespace hctr::ops {

void cuda::copy_blocks(Context& ctx, const std::vector<VectorBlock>& blocks) {
  hctr::cuda::enqueue(ctx, "copy_blocks", [blocks](Context& now) {
    for (const VectorBlock& block : blocks)
      HCTR_CHECK(cudaMemcpy2DAsync(block.to, static_cast<size_t>(block.to_stride), block.from,
                                   static_cast<size_t>(block.from_stride), static_cast<size_t>(block.bytes),
                                   static_cast<size_t>(block.count), cudaMemcpyDefault,
                                   hctr::cuda::stream_of(now.stream())));
  });
}

}  // namespace hctr::ops
