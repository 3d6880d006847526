// Handles memory that the system refuses.
#pragma once

#include "core/base/memory_reserve.h"

namespace hctr {

/// As long as it exists, a refused allocation of any thread releases this reserve and is tried again: the step under
/// way ends as it would have, and training sees between steps that memory is gone. One at a time.
class RefusedMemory {
 public:
  explicit RefusedMemory(MemoryReserve&);  // outlives this
  ~RefusedMemory();
  RefusedMemory(const RefusedMemory&) = delete;
  RefusedMemory& operator=(const RefusedMemory&) = delete;
};

}  // namespace hctr
