// The slots that batches pass through: page-locked memory the reader fills, and the same block on the device.
#pragma once

#include <optional>
#include <vector>

#include "data/batch_layout.h"
#include "device/buffer.h"
#include "device/context.h"
#include "device/tensor.h"

namespace hctr {

class BatchRing {
 public:
  BatchRing(const BatchLayout&, int slots, Device);

  int slots() const { return static_cast<int>(host_.size()); }
  /// Rows of a batch.
  int64_t samples() const { return layout_.shape.samples; }
  /// Where the reader writes.
  std::vector<std::byte*> host_blocks() const;
  BatchView on_host(int slot) const { return {layout_, host_[static_cast<size_t>(slot)].data()}; }
  /// The host's scalars of a slot; uploaded with it.
  StepState& state(int slot) const;
  /// Copies a slot to the device, in stream order. On the CPU there is nothing to copy: both are one block.
  void upload(StreamRef, int slot) const;
  /// The same for the StepState alone.
  void upload_state(StreamRef, int slot) const;
  /// Where a slot lies on the device; on the CPU that is where the reader writes.
  std::byte* device_block(int slot) const;

  StepState* device_state(int slot) const;
  Tensor label(int slot) const;
  std::optional<Tensor> dense(int slot) const;  ///< none when dense_dim is 0
  Tensor offsets(int slot, size_t table) const;
  Tensor keys(int slot, size_t table) const;

 private:
  Tensor tensor(int slot, size_t offset, const TensorSpec&) const;

  BatchLayout layout_;
  Device device_;
  std::vector<HostBuffer> host_;
  std::vector<Buffer> on_device_;  // empty on the CPU
};

}  // namespace hctr
