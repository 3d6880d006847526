#include "program/program_surroundings.h"

#include <cstdlib>

#include "core/base/expect.h"
#include "program/process_end.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

void print_log_line(Level level, std::string_view line) {
  const char* prefix = level == Level::warning ? "warning: " : level == Level::error ? "error: " : "";
  print_note(cat(prefix, line, "\n"));
}

void set_variable(const char* name, const char* value) {
  if (value)
    ::setenv(name, value, 1);
  else
    ::unsetenv(name);
}

}  // namespace

Environment system_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Log log_to_stderr() { return Log(print_log_line); }

Surroundings program_surroundings() {
  return {.environment = system_environment(),
          .log = print_log_line,
          .progress = show_progress_line,
          .on_lost_peer = print_error,
          .end_process = [](int exit_code) { std::_Exit(exit_code); },
          .set_environment = set_variable};
}

}  // namespace hctr
