#include "program/terminal.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <string>

#include "core/base/printable.h"

namespace hctr {
namespace {

bool write_to(std::FILE* stream, std::string_view text) {
  return text.empty() || std::fwrite(text.data(), 1, text.size(), stream) == text.size();
}

}  // namespace

void print(std::string_view text) { write_to(stdout, printable(text)); }

void print_formatted(const char* format, ...) {
  std::va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  const int length = std::vsnprintf(nullptr, 0, format, values);
  va_end(values);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  print(text);
}

void print_json(std::string_view json) { write_to(stdout, printable_json(json)); }

bool print_rows(std::string_view rows) {
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return terminal ? write_to(stdout, printable(rows)) : write_to(stdout, rows);
}

bool flush_output() { return std::fflush(stdout) == 0 && !std::ferror(stdout); }

void print_note(std::string_view text) {
  write_to(stderr, printable(text));
  std::fflush(stderr);
}

void erase_line() {
  write_to(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace hctr
