#include "core/base/progress.h"

#include <cmath>
#include <cstdio>

#include "core/base/expect.h"

namespace hctr {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string with_unit_prefix(double value) {
  const struct {
    double scale;
    const char* suffix;
  } steps[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& step : steps)
    // 0.9995: larger values print as 1.00 with the next prefix, because they would round to 1000
    if (value >= step.scale * 0.9995) {
      const double scaled = value / step.scale;
      return formatted(scaled >= 99.95 ? "%.0f" : scaled >= 9.995 ? "%.1f" : "%.2f", scaled) + step.suffix;
    }
  return formatted(value >= 9.995 || value == std::floor(value) ? "%.0f" : "%.2f", value);
}

std::string readable_time(double seconds) {
  if (seconds < 9.995) return formatted("%.2f s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return cat(whole, " s");
  const auto two = [](int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (whole < 3600) return cat(whole / 60, " min ", two(whole % 60), " s");
  return cat(whole / 3600, " h ", two(whole / 60 % 60), " min");
}

}  // namespace hctr
