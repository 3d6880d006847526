#include "device/row_memory.h"

#include <algorithm>
#include <limits>

namespace hctr {

int64_t RowMemory::device_room() const {
  if (limits_.device) return std::max<int64_t>(0, *limits_.device - device_bytes_);
  if (!has_host()) return std::numeric_limits<int64_t>::max();  // the device says when it is full
  return std::max<int64_t>(0, free_memory(device_) - limits_.reserve);
}

}  // namespace hctr
