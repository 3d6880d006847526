#include "program/progress_line_view.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr std::chrono::milliseconds kRedraw{200}, kNextLine{10000};

class ProgressLine : public ProgressView {
 public:
  ProgressLine(std::string what, std::string unit, int64_t total)
      : what_(std::move(what)),
        unit_(std::move(unit)),
        total_(total),
        start_(Clock::now()),
        drawn_(start_),
        terminal_(::isatty(STDERR_FILENO) == 1) {
    if (terminal_) drawn_ -= kRedraw;  // the first update() draws immediately
  }
  ~ProgressLine() override { ProgressLine::clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(int64_t done, std::string_view remark) override {
    done_ = done;
    const auto now = Clock::now();
    if (now - drawn_ < (terminal_ ? kRedraw : kNextLine)) return;
    drawn_ = now;
    draw(done, remark, false);
  }
  void finish() override { draw(done_, {}, true); }
  void clear() override {
    if (!visible_) return;
    erase_line();
    visible_ = false;
  }
  bool in_place() const override { return terminal_; }

 private:
  using Clock = std::chrono::steady_clock;

  void draw(int64_t done, std::string_view remark, bool last) {
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

  std::string what_, unit_;
  int64_t total_, done_ = 0;
  Clock::time_point start_, drawn_;
  bool terminal_, visible_ = false;
};

}  // namespace

std::unique_ptr<ProgressView> show_progress_line(const std::string& what, const std::string& unit, int64_t total) {
  return std::make_unique<ProgressLine>(what, unit, total);
}

}  // namespace hctr
