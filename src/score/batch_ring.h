// A ring of batch buffers: page-locked memory that the reader fills, a device copy of each, and its keys unpacked.
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
  /// Rows of a batch on this rank.
  int64_t samples() const { return layout_.shape.samples; }
  const BatchShape& shape() const { return layout_.shape; }
  const BatchLayout& layout() const { return layout_; }
  /// The host memory that the reader fills.
  std::vector<std::byte*> host_blocks() const;
  BatchView on_host(int buffer) const { return {layout_, host_[static_cast<size_t>(buffer)].data()}; }
  /// The scalars of a batch on the host; upload() copies them too.
  StepState& state(int buffer) const;
  /// Bytes of the batch in a buffer, which upload() copies.
  size_t used_bytes(int buffer) const { return on_host(buffer).bytes(); }
  /// Copies the batch in a buffer to the device, in stream order: as many bytes as it has, so the copy is not recorded.
  /// On the CPU host and device buffer are the same memory.
  void upload(StreamRef, int buffer) const;
  /// Copies bytes [begin, end) of that buffer.
  void upload(StreamRef, int buffer, size_t begin, size_t end) const;
  /// Copies the StepState alone.
  void upload_state(StreamRef, int buffer) const;
  /// Writes keys() and offsets() of the batch in the device copy of a buffer, and dense() if the layout unpacks it, on
  /// the context's stream.
  void unpack(Context&, int buffer) const;
  /// The device copy of a buffer; on the CPU the memory that the reader fills.
  std::byte* device_block(int buffer) const;

  StepState* device_state(int buffer) const;
  Tensor label(int buffer) const;
  std::optional<Tensor> dense(int buffer) const;  ///< none when dense_dim is 0
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
