// All output of the programs. Control characters in names, values or files never reach a terminal.
#pragma once

#include <string_view>

namespace hctr {

/// Prints text on the standard output, as printable() shows it.
void print(std::string_view text);
/// Prints formatted text on the standard output, as printable() shows it.
[[gnu::format(printf, 1, 2)]] void print_formatted(const char* format, ...);
/// Prints JSON on the standard output, as printable_json() writes it.
void print_json(std::string_view json);
/// Writes rows of data to the standard output, unchanged; on a terminal, as printable() shows them. Returns false if a
/// write failed (errno).
bool print_rows(std::string_view rows);
/// Flushes the standard output. Returns false if output was lost (errno).
bool flush_output();

/// Prints text on the standard error stream, as printable() shows it, without buffering.
void print_note(std::string_view text);
/// Erases the current line of a terminal on the standard error stream.
void erase_line();

}  // namespace hctr
