#include "device/arena.h"

namespace hctr {

size_t Arena::add(const TensorSpec& spec) {
  HCTR_EXPECT(!buffer_, "a tensor added to an arena that is built");
  places_.push_back({spec, bytes_});
  bytes_ = (bytes_ + spec.bytes() + 255) / 256 * 256;
  return places_.size() - 1;
}

void Arena::build(Device device) { buffer_.emplace(device, bytes_); }

Tensor Arena::get(size_t ticket) const {
  HCTR_EXPECT(buffer_, "a tensor taken from an arena that is not built");
  const Place& place = places_.at(ticket);
  return Tensor(buffer_->data() + place.offset, place.spec, buffer_->device());
}

Tensor Arena::flat_f32() const {
  HCTR_EXPECT(buffer_, "a tensor taken from an arena that is not built");
  return Tensor(buffer_->data(), TensorSpec(DType::f32, {static_cast<int64_t>(bytes_ / sizeof(float))}), buffer_->device());
}

}  // namespace hctr
