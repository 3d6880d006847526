#include "score/eval_cache.h"

#include "core/device/copy_bytes.h"

namespace hctr {

void EvalCache::keep(StreamRef stream, const BatchRing& ring, int buffer, Groups groups, const ReaderPosition& behind) {
  const size_t bytes = ring.used_bytes(buffer);
  Batch& batch = batches_.emplace_back(Batch{Buffer(device_, bytes), ring.state(buffer), std::move(groups)});
  copy_bytes(stream, batch.block.data(), ring.device_block(buffer), bytes);
  behind_ = behind;
}

void EvalCache::restore(StreamRef stream, const BatchRing& ring, int buffer, int64_t index) const {
  const Batch& batch = batches_[static_cast<size_t>(index)];
  copy_bytes(stream, ring.device_block(buffer), batch.block.data(), batch.block.bytes());
  ring.state(buffer) = batch.state;
}

}  // namespace hctr
