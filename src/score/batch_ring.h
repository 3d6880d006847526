// A ring of batch buffers: page-locked host memory that the reader fills, a device copy of each buffer, and the
// unpacked keys.
#pragma once

#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/tensor.h"
#include "formats/data/batch_layout.h"

namespace hctr {

class BatchRing {
 public:
  BatchRing(const BatchLayout&, int buffers, Device);

  int buffers() const { return static_cast<int>(host_.size()); }
  /// Row capacity of a batch on this rank.
  int64_t samples() const { return layout_.shape.samples; }
  const BatchShape& shape() const { return layout_.shape; }
  const BatchLayout& layout() const { return layout_; }
  /// The host memory of each buffer, which the reader fills.
  std::vector<std::byte*> host_blocks() const;
  BatchView on_host(int buffer) const { return {layout_, host_[static_cast<size_t>(buffer)].data()}; }
  /// The StepState of a batch on the host. upload() copies it, too.
  StepState& state(int buffer) const;
  /// Number of bytes of a batch that upload() copies.
  size_t used_bytes(int buffer) const { return on_host(buffer).bytes(); }
  /// Queues the copy of a batch to the device. The number of bytes varies per batch, so the copy cannot be recorded in
  /// a CUDA graph. On the CPU, host and device buffer are the same memory.
  void upload(StreamRef, int buffer) const;
  /// Queues the copy of bytes [begin, end) of a buffer.
  void upload(StreamRef, int buffer, size_t begin, size_t end) const;
  /// Queues the copy of only the StepState.
  void upload_state(StreamRef, int buffer) const;
  /// Queues the unpacking of a batch on the context's stream: writes keys() and offsets(), and dense() if the layout
  /// unpacks dense values.
  void unpack(Context&, int buffer) const;
  /// The device copy of a buffer; on the CPU, the host memory.
  std::byte* device_block(int buffer) const;

  StepState* device_state(int buffer) const;
  Tensor label(int buffer) const;
  std::optional<Tensor> dense(int buffer) const;  ///< empty if dense_dim is 0
  Tensor offsets(int buffer, size_t table) const;
  Tensor keys(int buffer, size_t table) const;

 private:
  Tensor tensor(std::byte* block, size_t offset, const TensorSpec&) const;

  BatchLayout layout_;
  Device device_;
  std::vector<HostBuffer> host_;
  std::vector<Buffer> on_device_;  // empty on the CPU
  std::vector<Buffer> unpacked_;
};

}  // namespace hctr
