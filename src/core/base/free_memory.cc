#include "core/base/free_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

namespace hctr {
namespace {

/// Finds the first line that begins with `name`, and parses the number after `name`. Returns the largest int64_t if
/// there is no such number.
int64_t number_in(const std::string& path, const std::string& name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const char* begin = line.data() + name.size();
    int64_t number = 0;
    if (std::from_chars(begin, line.data() + line.size(), number).ec == std::errc()) return number;
    break;
  }
  return std::numeric_limits<int64_t>::max();
}

int64_t left_of_cgroup(const std::string& folder, const char* limit, const char* used) {
  const int64_t most = number_in(folder + limit), now = number_in(folder + used);
  if (most == std::numeric_limits<int64_t>::max() || now == std::numeric_limits<int64_t>::max()) return most;
  // inactive page cache counts as free, because the kernel reclaims it under memory pressure
  int64_t cached = number_in(folder + "memory.stat", "inactive_file ");
  if (cached == std::numeric_limits<int64_t>::max()) cached = 0;
  return std::max<int64_t>(0, most - std::max<int64_t>(0, now - cached));
}

int64_t free_in_system() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) return std::stoll(line.substr(13)) * 1024;
  return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

}  // namespace

int64_t free_host_memory() {
  return std::min({free_in_system(), left_of_cgroup("/sys/fs/cgroup/", "memory.max", "memory.current"),
                   left_of_cgroup("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes")});
}

}  // namespace hctr
