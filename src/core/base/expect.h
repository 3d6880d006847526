// Helpers that build and throw errors: cat(), HCTR_EXPECT, in_context().
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "hctr/error.h"

namespace hctr {

/// An argument of cat(): a string, a character, or a number. Floating-point numbers print with six significant digits.
class TextPiece {
 public:
  TextPiece(std::string_view text) : text_(text) {}
  TextPiece(const std::string& text) : text_(text) {}
  TextPiece(const char* text) : text_(text) {}
  TextPiece(char character) : number_{character}, text_(number_, 1) {}
  TextPiece(bool value) : TextPiece(value ? '1' : '0') {}
  TextPiece(double value);
  TextPiece(float value) : TextPiece(static_cast<double>(value)) {}
  TextPiece(long long value);
  TextPiece(unsigned long long value);
  TextPiece(long value) : TextPiece(static_cast<long long>(value)) {}
  TextPiece(int value) : TextPiece(static_cast<long long>(value)) {}
  TextPiece(unsigned long value) : TextPiece(static_cast<unsigned long long>(value)) {}
  TextPiece(unsigned value) : TextPiece(static_cast<unsigned long long>(value)) {}
  TextPiece(const TextPiece&) = delete;
  TextPiece& operator=(const TextPiece&) = delete;

  std::string_view text() const { return text_; }

 private:
  char number_[32];
  std::string_view text_;
};

std::string join(std::initializer_list<TextPiece> pieces);

/// Concatenates all arguments into one string.
template <class... Parts>
std::string cat(const Parts&... parts) {
  return join({TextPiece(parts)...});
}

[[noreturn]] void broken_promise(const char* file, int line, const std::string& message);

/// Runs `body`. If `body` throws an Error, calls what() and appends the line "while <what()>" to the error's message.
template <class What, class Body>
decltype(auto) in_context(What&& what, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw error.with_context(what());
  }
}

}  // namespace hctr

/// Asserts an internal invariant. Checked in every build. A false condition throws Error(bug).
#define HCTR_EXPECT(condition, ...)                                                         \
  do {                                                                                      \
    if (!(condition)) ::hctr::broken_promise(__FILE__, __LINE__, ::hctr::cat(__VA_ARGS__)); \
  } while (false)
