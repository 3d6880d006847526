// Words and numbers in the reasons that --init prints.
#pragma once

#include <cmath>
#include <string>

#include "config/json.h"
#include "core/base/expect.h"
#include "prepare/init/column_facts.h"

namespace hctr {

inline double share(int64_t part, int64_t of) {
  return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}
inline std::string percent(double share) {
  return share > 0 && share < 0.001 ? "less than 0.1 %" : cat(std::round(share * 1000) / 10, " %");
}

/// The number in plain notation: 17, 0.25, 1484705.
inline std::string digits(double number) {
  const bool whole = number == std::floor(number) && std::fabs(number) < 1e15;
  return whole ? cat(static_cast<int64_t>(number)) : Json(number).text();
}

/// A text such as ", written as 1,234.5 with '$'"; empty for plain numbers.
inline std::string words_of(const NumberNotation& notation) {
  if (!notation.given()) return {};
  return cat(", written as ", word_of(notation.format.value_or(NumberFormat::plain)),
             notation.unit.empty() ? "" : cat(" with '", notation.unit, "'"));
}

/// Whether all values are integers of at least 0 in the notation that the reader of keys accepts.
inline bool are_key_numbers(const ColumnFacts& facts) {
  return facts.integers == facts.values() && facts.negative == 0 && facts.leading_zeros == 0 &&
         facts.held_out_not_keys == 0 && facts.most < 0x1p63;
}

}  // namespace hctr
