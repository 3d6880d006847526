#include "core/device/held_memory.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kAlignment = 256;

}  // namespace

void HeldMemory::hold(Device device, size_t bytes) {
  HCTR_EXPECT(takers_ == 0, "memory that is in use cannot be replaced");
  memory_ = Buffer(device, bytes);
}

std::byte* HeldMemory::take(size_t bytes) {
  if (memory_.bytes() - used_ < bytes) return nullptr;
  std::byte* const data = memory_.data() + used_;
  used_ = std::min(memory_.bytes(), (used_ + bytes + kAlignment - 1) / kAlignment * kAlignment);
  ++takers_;
  return data;
}

void HeldMemory::give_back() {
  if (--takers_ == 0) used_ = 0;
}

HeldBuffer::HeldBuffer(HeldMemory& held, Device device, size_t bytes) : device_(device) {
  if (bytes == 0) return;
  data_ = held.take(bytes);
  if (data_) {
    from_ = &held;
  } else {
    own_ = Buffer(device, bytes);
    data_ = own_.data();
  }
}

HeldBuffer::HeldBuffer(HeldBuffer&& other) noexcept
    : from_(std::exchange(other.from_, nullptr)),
      own_(std::move(other.own_)),
      device_(other.device_),
      data_(std::exchange(other.data_, nullptr)) {}

HeldBuffer::~HeldBuffer() {
  if (from_) from_->give_back();
}

}  // namespace hctr
