// The rows of a table of a level, for comparisons.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "store/level.h"

namespace hctr::test {

using LevelRows = std::map<int64_t, std::vector<float>>;

inline LevelRows rows_in(LevelTable& table) {
  LevelRows rows;
  table.each([&](std::span<const int64_t> keys, std::span<const float> values) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* const row = values.data() + static_cast<int64_t>(i) * table.dim();
      rows[keys[i]].assign(row, row + table.dim());
    }
  });
  return rows;
}

}  // namespace hctr::test
