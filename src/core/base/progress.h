// Progress of a long operation, shown by the caller, and number formatting for people.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "hctr/surroundings.h"

namespace hctr {

/// Reports progress to an optional view. Not thread-safe.
class Progress {
 public:
  /// The arguments of ShowProgress. `show` may be null.
  Progress(const ShowProgress& show, const std::string& what, const std::string& unit, int64_t total)
      : view_(show ? show(what, unit, total) : nullptr) {}

  /// Sets the units done so far and a remark to append.
  void update(int64_t done, std::string_view remark = {}) {
    if (view_) view_->update(done, remark);
  }
  /// Shows the total, the elapsed time and the rate.
  void finish() {
    if (view_ && !std::exchange(finished_, true)) view_->finish();
  }
  /// Clears the display for other output. The next update() shows the progress again.
  void clear() {
    if (view_) view_->clear();
  }
  /// Whether each update overwrites the previous one on the screen.
  bool in_place() const { return view_ && view_->in_place(); }

 private:
  std::unique_ptr<ProgressView> view_;
  bool finished_ = false;
};

/// Formats one number as printf does: formatted("%.2f", 0.125) is "0.12".
std::string formatted(const char* format, double value);
/// 950 -> "950", 12345 -> "12.3 k", 4.2e6 -> "4.20 M".
std::string with_unit_prefix(double value);
/// Seconds -> "0.42 s", "59 s", "2 min 05 s", "3 h 12 min".
std::string readable_time(double seconds);

}  // namespace hctr
