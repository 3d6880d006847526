// The distinct keys of a request.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hctr {

/// Each key once, in the order of first occurrences.
struct UniqueKeys {
  std::vector<int64_t> keys;
  std::vector<int32_t> places;                          ///< where each first occurs
  std::vector<std::pair<int32_t, int32_t>> duplicates;  ///< position, and the first position of the same key

  void set(std::span<const int64_t> all);

 private:
  std::vector<int32_t> heads_;  // an open-addressing table of positions + 1
};

}  // namespace hctr
