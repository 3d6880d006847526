#include "device/arena.h"

namespace hctr {

size_t Arena::add(const TensorSpec& spec) {
  HCTR_EXPECT(!buffer_, "a tensor added to an arena that is built");
  places_.push_back({spec, bytes_});
  bytes_ = (bytes_ + spec.bytes() + 255) / 256 * 256;
  return places_.size() - 1;
}

void Arena::add_alike(const Arena& other, DType dtype) {
  HCTR_EXPECT(!buffer_ && places_.empty(), "an arena made alike another that has tensors of its own");
  const auto scaled = [&](size_t bytes, DType from) { return bytes / size_of(from) * size_of(dtype); };
  for (const Place& place : other.places_)
    places_.push_back(
        {TensorSpec(dtype, place.spec.shape, place.spec.row_stride), scaled(place.offset, place.spec.dtype)});
  if (!places_.empty()) bytes_ = scaled(other.bytes_, other.places_[0].spec.dtype);
}

void Arena::build(Device device) { buffer_.emplace(device, bytes_); }

Tensor Arena::get(size_t ticket) const {
  HCTR_EXPECT(buffer_, "a tensor taken from an arena that is not built");
  const Place& place = places_.at(ticket);
  return Tensor(buffer_->data() + place.offset, place.spec, buffer_->device());
}

Tensor Arena::flat(DType dtype) const {
  HCTR_EXPECT(buffer_, "a tensor taken from an arena that is not built");
  return Tensor(buffer_->data(), TensorSpec(dtype, {static_cast<int64_t>(bytes_ / size_of(dtype))}), buffer_->device());
}

}  // namespace hctr
