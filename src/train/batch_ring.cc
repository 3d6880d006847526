#include "train/batch_ring.h"

#include "device/copy.h"

namespace hctr {

BatchRing::BatchRing(const BatchLayout& layout, int buffers, Device device) : layout_(layout), device_(device) {
  for (int s = 0; s < buffers; ++s) {
    host_.emplace_back(device, layout.bytes);
    if (device.is_cuda()) on_device_.emplace_back(device, layout.bytes);
  }
}

std::vector<std::byte*> BatchRing::host_blocks() const {
  std::vector<std::byte*> blocks;
  for (const HostBuffer& buffer : host_) blocks.push_back(buffer.data());
  return blocks;
}

StepState& BatchRing::state(int buffer) const {
  return *reinterpret_cast<StepState*>(host_[static_cast<size_t>(buffer)].data() + layout_.state);
}

void BatchRing::upload(StreamRef stream, int buffer) const {
  if (device_.is_cuda())
    copy_bytes(stream, device_block(buffer), host_[static_cast<size_t>(buffer)].data(), layout_.bytes);
}

void BatchRing::upload_state(StreamRef stream, int buffer) const {
  if (device_.is_cuda()) copy_bytes(stream, device_state(buffer), &state(buffer), sizeof(StepState));
}

std::byte* BatchRing::device_block(int buffer) const {
  const auto s = static_cast<size_t>(buffer);
  return device_.is_cuda() ? on_device_[s].data() : host_[s].data();
}

Tensor BatchRing::tensor(int buffer, size_t offset, const TensorSpec& spec) const {
  return Tensor(device_block(buffer) + offset, spec, device_);
}

StepState* BatchRing::device_state(int buffer) const {
  return reinterpret_cast<StepState*>(device_block(buffer) + layout_.state);
}

Tensor BatchRing::label(int buffer) const {
  return tensor(buffer, layout_.label, TensorSpec(DType::f32, {layout_.shape.samples, layout_.shape.label_dim}));
}

std::optional<Tensor> BatchRing::dense(int buffer) const {
  if (layout_.shape.dense_dim == 0) return std::nullopt;
  return tensor(buffer, layout_.dense, TensorSpec(DType::f32, {layout_.shape.samples, layout_.shape.dense_dim}));
}

Tensor BatchRing::offsets(int buffer, size_t table) const {
  return tensor(buffer, layout_.tables[table].offsets,
                TensorSpec(DType::i32, {layout_.shape.tables[table].slots * layout_.shape.samples + 1}));
}

Tensor BatchRing::keys(int buffer, size_t table) const {
  return tensor(buffer, layout_.tables[table].keys, TensorSpec(DType::i64, {layout_.shape.tables[table].key_capacity}));
}

}  // namespace hctr
