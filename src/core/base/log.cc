#include "core/base/log.h"

#include "core/base/terminal.h"

namespace hctr {
namespace {
std::mutex log_mutex;  // one for all logs: lines of different ranks end at the same terminal
}

void Log::write(Level level, std::string_view line) const {
  const std::lock_guard lock(log_mutex);
  sink_(level, line);
}

Log Log::to_stderr() {
  return Log([](Level level, std::string_view line) {
    const char* prefix = level == Level::warning ? "warning: " : level == Level::error ? "error: " : "";
    print_note(cat(prefix, line, "\n"));
  });
}

Log Log::silent() {
  return Log([](Level, std::string_view) {});
}

}  // namespace hctr
