#include "train/eval_cache.h"

#include "device/copy.h"

namespace hctr {

void EvalCache::keep(StreamRef stream, const BatchRing& ring, int slot, Groups groups, const ReaderPosition& behind) {
  Batch& batch = batches_.emplace_back(Batch{Buffer(device_, bytes_), ring.state(slot), std::move(groups)});
  copy_bytes(stream, batch.block.data(), ring.device_block(slot), bytes_);
  behind_ = behind;
}

void EvalCache::bring(StreamRef stream, const BatchRing& ring, int slot, int64_t index) const {
  const Batch& batch = batches_[static_cast<size_t>(index)];
  copy_bytes(stream, ring.device_block(slot), batch.block.data(), bytes_);
  ring.state(slot) = batch.state;
}

}  // namespace hctr
