// A progress line with rate and time left: redrawn in place on a terminal, else a new line every few seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hctr {

/// Counts `done` of `total` units of work. Used by one thread at a time. Writes to the standard error stream.
class Progress {
 public:
  /// `what` names the work, `unit` what is counted ("rows", "samples"). A total of 0, or one that is exceeded, means
  /// unknown.
  Progress(std::string what, std::string unit, int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Sets the work done so far, and a remark to append. Redraws at most a few times a second.
  void update(int64_t done, std::string_view remark = {});
  /// Writes the last line: total work, time, rate.
  void finish();
  /// Clears the line so that other text can be written. The next update() draws it again.
  void clear();

 private:
  void draw(int64_t done, std::string_view remark, bool last);
  using Clock = std::chrono::steady_clock;
  std::string what_, unit_;
  int64_t total_, done_ = 0;
  Clock::time_point start_, drawn_;
  bool terminal_, visible_ = false, finished_ = false;
};

/// As printf writes one number: formatted("%.2f", 0.125) is "0.12".
std::string formatted(const char* format, double value);
/// 950 -> "950", 12345 -> "12.3 k", 4.2e6 -> "4.20 M".
std::string with_unit_prefix(double value);
/// Seconds -> "0.42 s", "59 s", "2 min 05 s", "3 h 12 min".
std::string readable_time(double seconds);

}  // namespace hctr
