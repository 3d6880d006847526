#include "core/base/wall_time.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace hctr {

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_text(double unix_seconds) {
  const auto milliseconds = static_cast<long long>(std::floor(unix_seconds * 1000));
  const auto whole = static_cast<std::time_t>(milliseconds / 1000);
  std::tm utc{};
  gmtime_r(&whole, &utc);
  char date[32], text[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(milliseconds % 1000));
  return text;
}

}  // namespace hctr
