#include "ops/common/host_copy.h"

#include <cstring>

#include "core/base/expect.h"

namespace hctr::ops {

void copy_with_host(Context& ctx, std::span<const HostCopy> copies, uint32_t* done) {
  HCTR_EXPECT(copies.size() <= kMostHostCopies, "copy_with_host: ", copies.size(), " copies");
  for (const HostCopy& copy : copies)
    HCTR_EXPECT((reinterpret_cast<uintptr_t>(copy.to) | reinterpret_cast<uintptr_t>(copy.from)) % 16 == 0,
                "copy_with_host: addresses must be multiples of 16 bytes");
  HCTR_ON_DEVICE(ctx, copy_with_host(ctx, copies, done));
}

void cpu::copy_with_host(Context&, std::span<const HostCopy> copies, uint32_t* done) {
  for (const HostCopy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
  if (done) *done = 1;
}

}  // namespace hctr::ops
