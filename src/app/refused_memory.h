// Handles failed memory allocations.
#pragma once

#include "core/base/memory_reserve.h"

namespace hctr {

/// During this object's lifetime, a failed allocation of any thread releases the reserve and is repeated. The current
/// step can then finish, and training checks between steps whether the reserve is released. At most one object may
/// exist.
class RefusedMemory {
 public:
  explicit RefusedMemory(MemoryReserve&);  // must outlive this object
  ~RefusedMemory();
  RefusedMemory(const RefusedMemory&) = delete;
  RefusedMemory& operator=(const RefusedMemory&) = delete;
};

}  // namespace hctr
