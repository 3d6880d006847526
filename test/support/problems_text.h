// Formats the problems of a config as text, for comparison.
#pragma once

#include <string>

#include "config/problems.h"

namespace hctr::test {

/// One line per problem, "error /pointer: message". Errors precede warnings, and warnings precede notes.
inline std::string problems_text(const Problems& problems) {
  std::string text;
  const auto add = [&](const char* kind, const std::vector<Problems::Entry>& entries) {
    for (const Problems::Entry& entry : entries) text += kind + (" " + entry.pointer) + ": " + entry.message + "\n";
  };
  add("error", problems.errors());
  add("warning", problems.warnings());
  add("note", problems.notes());
  return text;
}

}  // namespace hctr::test
