#include "core/base/progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "core/base/expect.h"
#include "core/base/terminal.h"

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kRedraw{200}, kNextLine{10000};

}  // namespace

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
    if (value >= step.scale * 0.9995) {  // a value that rounds to 1000 is 1.00 of the next prefix
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

Progress::Progress(std::string what, std::string unit, int64_t total)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      start_(Clock::now()),
      drawn_(start_),
      terminal_(::isatty(STDERR_FILENO) == 1) {
  if (terminal_) drawn_ -= kRedraw;  // the first update() draws immediately
}

Progress::~Progress() { clear(); }

void Progress::update(int64_t done, std::string_view remark) {
  done_ = done;
  const auto now = Clock::now();
  if (now - drawn_ < (terminal_ ? kRedraw : kNextLine)) return;
  drawn_ = now;
  draw(done, remark, false);
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  draw(done_, {}, true);
}

void Progress::clear() {
  if (!visible_) return;
  erase_line();
  visible_ = false;
}

void Progress::draw(int64_t done, std::string_view remark, bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const bool known = !last && total_ > 0 && done <= total_;  // a file may have grown since its size was read
  std::string line = what_ + ": ";
  if (known && terminal_) {
    const int width = 24, filled = static_cast<int>(static_cast<double>(width) * static_cast<double>(done) /
                                                    static_cast<double>(total_));
    line += "[" + std::string(static_cast<size_t>(filled), '=') +
            std::string(static_cast<size_t>(width - filled), ' ') + "] ";
  }
  line += with_unit_prefix(static_cast<double>(done));
  if (known) line += " of " + with_unit_prefix(static_cast<double>(total_));
  line += " " + unit_ + (last ? " in " + readable_time(seconds) : "") + ", " + with_unit_prefix(rate) + "/s";
  if (known && rate > 0) line += ", " + readable_time(static_cast<double>(total_ - done) / rate) + " left";
  if (!remark.empty()) line += cat(", ", remark);
  if (terminal_) erase_line();
  print_note(line + (last || !terminal_ ? "\n" : ""));
  visible_ = terminal_ && !last;
}

}  // namespace hctr
