// Names of ranks and processes for messages.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/expect.h"

namespace hctr {

/// Returns "process 1" or "processes 0, 2". Names at most kMostNamed numbers, and appends the count of those not named.
inline std::string number_list(const char* one, const char* several, const std::set<int>& numbers) {
  constexpr size_t kMostNamed = 32;
  std::string text;
  size_t named = 0;
  for (const int number : numbers) {
    if (named == kMostNamed) {
      text += cat(" and ", numbers.size() - named, " more");
      break;
    }
    text += cat(named++ == 0 ? "" : ", ", number);
  }
  return cat(numbers.size() == 1 ? one : several, " ", text);
}

inline std::string rank_list(const std::set<int>& ranks) { return number_list("rank", "ranks", ranks); }
inline std::string process_list(const std::set<int>& processes) {
  return number_list("process", "processes", processes);
}

inline constexpr int64_t kMostRanksOfJob = int64_t{1} << 16;

/// Checks the numbers of ranks that the processes report. `of_each`, `hosts`: indexed by process. Errors: Error(comm)
/// naming the process that reports less than one rank, or whose ranks raise the total above kMostRanksOfJob.
inline void check_rank_counts(const std::vector<int>& of_each, const std::vector<std::string>& hosts) {
  int64_t total = 0;
  for (size_t p = 0; p < of_each.size(); ++p) {
    total += of_each[p];
    if (of_each[p] < 1 || total > kMostRanksOfJob)
      throw Error(Kind::comm,
                  cat("process ", p, " on ", hosts.at(p), " reports ", of_each[p],
                      " ranks; expected at least one rank per process, and in total at most ", kMostRanksOfJob));
  }
}

}  // namespace hctr
