#include "train/batch_ring.h"

#include "device/copy.h"

namespace hctr {

BatchRing::BatchRing(const BatchLayout& layout, int slots, Device device) : layout_(layout), device_(device) {
  for (int s = 0; s < slots; ++s) {
    host_.emplace_back(device, layout.bytes);
    if (device.is_cuda()) on_device_.emplace_back(device, layout.bytes);
  }
}

std::vector<std::byte*> BatchRing::host_blocks() const {
  std::vector<std::byte*> blocks;
  for (const HostBuffer& buffer : host_) blocks.push_back(buffer.data());
  return blocks;
}

StepState& BatchRing::state(int slot) const {
  return *reinterpret_cast<StepState*>(host_[static_cast<size_t>(slot)].data() + layout_.state);
}

void BatchRing::upload(StreamRef stream, int slot) const {
  if (device_.is_cuda()) copy_bytes(stream, device_block(slot), host_[static_cast<size_t>(slot)].data(), layout_.bytes);
}

void BatchRing::upload_state(StreamRef stream, int slot) const {
  if (device_.is_cuda()) copy_bytes(stream, device_state(slot), &state(slot), sizeof(StepState));
}

std::byte* BatchRing::device_block(int slot) const {
  const auto s = static_cast<size_t>(slot);
  return device_.is_cuda() ? on_device_[s].data() : host_[s].data();
}

Tensor BatchRing::tensor(int slot, size_t offset, const TensorSpec& spec) const {
  return Tensor(device_block(slot) + offset, spec, device_);
}

StepState* BatchRing::device_state(int slot) const {
  return reinterpret_cast<StepState*>(device_block(slot) + layout_.state);
}

Tensor BatchRing::label(int slot) const {
  return tensor(slot, layout_.label, TensorSpec(DType::f32, {layout_.shape.samples, layout_.shape.label_dim}));
}

std::optional<Tensor> BatchRing::dense(int slot) const {
  if (layout_.shape.dense_dim == 0) return std::nullopt;
  return tensor(slot, layout_.dense, TensorSpec(DType::f32, {layout_.shape.samples, layout_.shape.dense_dim}));
}

Tensor BatchRing::offsets(int slot, size_t table) const {
  return tensor(slot, layout_.tables[table].offsets,
                TensorSpec(DType::i32, {layout_.shape.tables[table].slots * layout_.shape.samples + 1}));
}

Tensor BatchRing::keys(int slot, size_t table) const {
  return tensor(slot, layout_.tables[table].keys, TensorSpec(DType::i64, {layout_.shape.tables[table].key_capacity}));
}

}  // namespace hctr
