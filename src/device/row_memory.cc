#include "device/row_memory.h"

#include <algorithm>
#include <limits>

namespace hctr {

int64_t RowMemory::device_room() const {
  if (limits_.device) return std::max<int64_t>(0, *limits_.device - device_bytes_);
  if (!has_host()) return std::numeric_limits<int64_t>::max();  // the device says when it is full
  return std::max<int64_t>(0, free_memory(device_) - limits_.reserve);
}

int64_t RowMemory::others_move_to_host(const RowMemoryUser* but, int64_t bytes) {
  int64_t moved = 0;
  for (RowMemoryUser* const user : users_)
    if (user != but && moved < bytes) moved += user->move_to_host(bytes - moved);
  return moved;
}

}  // namespace hctr
