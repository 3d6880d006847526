// The distinct keys of a request.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hctr {

/// The distinct keys, in order of first occurrence.
struct UniqueKeys {
  std::vector<int64_t> keys;
  std::vector<int32_t> places;                          ///< position of each key's first occurrence
  std::vector<std::pair<int32_t, int32_t>> duplicates;  ///< position of a duplicate, and of the key's first occurrence

  void set(std::span<const int64_t> all);

 private:
  std::vector<int32_t> heads_;  // open-addressing table of positions + 1
};

}  // namespace hctr
