#include "score/batch_ring.h"

#include "core/device/copy_bytes.h"
#include "ops/common/unpack_batch.h"

namespace hctr {

BatchRing::BatchRing(const BatchLayout& layout, int buffers, Device device) : layout_(layout), device_(device) {
  for (int s = 0; s < buffers; ++s) {
    host_.emplace_back(device, layout.bytes);
    if (device.is_cuda()) on_device_.emplace_back(device, layout.bytes);
    unpacked_.emplace_back(device, layout.unpacked_bytes);
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

void BatchRing::upload(StreamRef stream, int buffer) const { upload(stream, buffer, 0, used_bytes(buffer)); }

void BatchRing::upload(StreamRef stream, int buffer, size_t begin, size_t end) const {
  if (device_.is_cuda())
    copy_bytes(stream, device_block(buffer) + begin, host_[static_cast<size_t>(buffer)].data() + begin, end - begin);
}

void BatchRing::upload_state(StreamRef stream, int buffer) const {
  if (device_.is_cuda()) copy_bytes(stream, device_state(buffer), &state(buffer), sizeof(StepState));
}

std::byte* BatchRing::device_block(int buffer) const {
  const auto s = static_cast<size_t>(buffer);
  return device_.is_cuda() ? on_device_[s].data() : host_[s].data();
}

Tensor BatchRing::tensor(std::byte* block, size_t offset, const TensorSpec& spec) const {
  return Tensor(block + offset, spec, device_);
}

StepState* BatchRing::device_state(int buffer) const {
  return reinterpret_cast<StepState*>(device_block(buffer) + layout_.state);
}

Tensor BatchRing::label(int buffer) const {
  return tensor(device_block(buffer), layout_.label,
                TensorSpec(DType::f32, {layout_.shape.samples, layout_.shape.label_dim}));
}

std::optional<Tensor> BatchRing::dense(int buffer) const {
  if (layout_.shape.dense_dim == 0) return std::nullopt;
  TensorSpec spec(layout_.dense_dtype, {layout_.shape.samples, layout_.shape.dense_dim}, layout_.dense_stride);
  spec.zero_columns = layout_.dense_stride - layout_.shape.dense_dim;
  return layout_.unpacks_dense() ? tensor(unpacked_[static_cast<size_t>(buffer)].data(), layout_.unpacked_dense, spec)
                                 : tensor(device_block(buffer), layout_.dense, spec);
}

Tensor BatchRing::offsets(int buffer, size_t table) const {
  return tensor(unpacked_[static_cast<size_t>(buffer)].data(), layout_.tables[table].offsets,
                TensorSpec(DType::i32, {layout_.shape.tables[table].slots * layout_.shape.samples + 1}));
}

Tensor BatchRing::keys(int buffer, size_t table) const {
  return tensor(unpacked_[static_cast<size_t>(buffer)].data(), layout_.tables[table].keys,
                TensorSpec(DType::i64, {layout_.shape.tables[table].key_capacity}));
}

void BatchRing::unpack(Context& ctx, int buffer) const {
  std::byte* const block = device_block(buffer);
  const BatchView view(layout_, block);  // device addresses
  std::vector<ops::UnpackedKeys> inputs;
  for (size_t t = 0; t < layout_.tables.size(); ++t)
    inputs.push_back({view.packed + t, keys(buffer, t), offsets(buffer, t)});
  std::optional<ops::UnpackedRows> rows;
  if (layout_.unpacks_dense()) rows = {view.dense, *dense(buffer)};
  ops::unpack_batch(ctx, block, inputs, rows, layout_.shape.samples);
}

}  // namespace hctr
