// How errors are made inside the program: cat(), HCTR_EXPECT, in_context().
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "hctr/error.h"

namespace hctr {

/// All arguments streamed into one string.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

[[noreturn]] void broken_promise(const char* file, int line, const std::string& message);

/// Runs `body`; an Error leaving it gets the line "while <what()>". `what` is only called then.
template <class What, class Body>
decltype(auto) in_context(What&& what, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw error.with_context(what());
  }
}

}  // namespace hctr

/// A promise between functions. Checked in every build; breaking it throws Error(bug).
#define HCTR_EXPECT(condition, ...)                                                         \
  do {                                                                                      \
    if (!(condition)) ::hctr::broken_promise(__FILE__, __LINE__, ::hctr::cat(__VA_ARGS__)); \
  } while (false)
