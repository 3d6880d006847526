#include "core/device/host_parts.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace hctr {
namespace {

struct HostParts {
  std::mutex mutex;
  std::map<const std::byte*, const std::byte*> ends;  // [start of a part]: its end
  std::atomic<int64_t> count{0};                      // number of parts; while this is 0, look-ups skip the lock
};

HostParts& host_parts() {
  static HostParts parts;
  return parts;
}

}  // namespace

void set_host_part(const std::byte* begin, size_t bytes) {
  HostParts& parts = host_parts();
  const std::lock_guard lock(parts.mutex);
  if (bytes == 0)
    parts.ends.erase(begin);
  else
    parts.ends[begin] = begin + bytes;
  parts.count = static_cast<int64_t>(parts.ends.size());
}

bool in_host_part(const void* first, size_t bytes) {
  HostParts& parts = host_parts();
  if (parts.count == 0) return false;
  const std::lock_guard lock(parts.mutex);
  const auto* begin = static_cast<const std::byte*>(first);
  auto next = parts.ends.upper_bound(begin);
  if (next != parts.ends.end() && next->first < begin + bytes) return true;
  return next != parts.ends.begin() && std::prev(next)->second > begin;
}

}  // namespace hctr
