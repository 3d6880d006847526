// Ranks and processes as messages name them.
#pragma once

#include <set>
#include <string>

#include "base/error.h"

namespace hctr {

/// "process 1", or "processes 0, 2".
inline std::string number_list(const char* one, const char* several, const std::set<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += cat(text.empty() ? "" : ", ", number);
  return cat(numbers.size() == 1 ? one : several, " ", text);
}

inline std::string rank_list(const std::set<int>& ranks) { return number_list("rank", "ranks", ranks); }
inline std::string process_list(const std::set<int>& processes) {
  return number_list("process", "processes", processes);
}

}  // namespace hctr
