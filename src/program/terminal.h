// All that the programs print. No control character of a name, a value or a file passes: a terminal obeys none.
#pragma once

#include <string_view>

namespace hctr {

/// Text for people on the standard output, as printable() shows it.
void print(std::string_view text);
/// The same of what printf() would write.
[[gnu::format(printf, 1, 2)]] void print_formatted(const char* format, ...);
/// JSON on the standard output, as printable_json() writes it.
void print_json(std::string_view json);
/// Rows of data on the standard output: each byte as it is, but to a terminal as printable() shows it. False: they
/// could not be written (errno).
bool print_rows(std::string_view rows);
/// Writes out what the standard output buffers. False: output was lost (errno).
bool flush_output();

/// Text for people on the standard error stream, as printable() shows it, at once.
void print_note(std::string_view text);
/// Erases the line that a terminal behind the standard error stream shows last.
void erase_line();

}  // namespace hctr
