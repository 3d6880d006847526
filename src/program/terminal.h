// Everything that the programs print. Control characters in a name, a value or a file never reach a terminal.
#pragma once

#include <string_view>

namespace hctr {

/// Prints text on the standard output, as printable() shows it.
void print(std::string_view text);
/// The same for the output of printf().
[[gnu::format(printf, 1, 2)]] void print_formatted(const char* format, ...);
/// Prints JSON on the standard output, as printable_json() writes it.
void print_json(std::string_view json);
/// Writes rows of data to the standard output: unchanged, except that a terminal gets them as printable() shows them.
/// False: a write failed (errno).
bool print_rows(std::string_view rows);
/// Flushes the standard output. False: output was lost (errno).
bool flush_output();

/// Prints text on the standard error stream, as printable() shows it, without buffering.
void print_note(std::string_view text);
/// Erases the last line of a terminal on the standard error stream.
void erase_line();

}  // namespace hctr
