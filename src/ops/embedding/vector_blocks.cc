#include "ops/embedding/vector_blocks.h"

#include <cstring>

namespace hctr::ops {

void copy_blocks(Context& ctx, const std::vector<VectorBlock>& blocks) {
  HCTR_ON_DEVICE(ctx, copy_blocks(ctx, blocks));
}

void cpu::copy_blocks(Context& ctx, const std::vector<VectorBlock>& blocks) {
  for (const VectorBlock& block : blocks)
    ctx.threads().parallel_for(block.count, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(block.to + i * block.to_stride, block.from + i * block.from_stride,
                    static_cast<size_t>(block.bytes));
    });
}

}  // namespace hctr::ops
