#include "core/device/arena.h"

#include <cstdint>

namespace hctr {

size_t Arena::add(const TensorSpec& spec) {
  HCTR_EXPECT(!built_, "a tensor cannot be added to an arena that is already built");
  regions_.push_back({spec, bytes_});
  bytes_ = (bytes_ + spec.bytes() + 255) / 256 * 256;
  return regions_.size() - 1;
}

void Arena::add_alike(const Arena& other, DType dtype) {
  HCTR_EXPECT(!built_ && regions_.empty(), "add_alike() needs an empty arena");
  const auto scaled = [&](size_t bytes, DType from) { return bytes / size_of(from) * size_of(dtype); };
  for (const Region& region : other.regions_) {
    TensorSpec spec = region.spec;
    spec.dtype = dtype;
    regions_.push_back({spec, scaled(region.offset, region.spec.dtype)});
  }
  if (!regions_.empty()) bytes_ = scaled(other.bytes_, other.regions_[0].spec.dtype);
}

void Arena::build(Device device) {
  buffer_.emplace(device, bytes_);
  data_ = buffer_->data();
  device_ = device;
  built_ = true;
}

void Arena::place(Device device) {
  data_ = reinterpret_cast<std::byte*>(uintptr_t{1} << 32);
  device_ = device;
  built_ = true;
}

Tensor Arena::get(size_t ticket) const {
  HCTR_EXPECT(built_, "build the arena before requesting its tensors");
  const Region& region = regions_.at(ticket);
  return Tensor(data_ + region.offset, region.spec, device_);
}

Tensor Arena::flat(DType dtype) const {
  HCTR_EXPECT(built_, "build the arena before requesting its tensors");
  return Tensor(data_, TensorSpec(dtype, {static_cast<int64_t>(bytes_ / size_of(dtype))}), device_);
}

}  // namespace hctr
