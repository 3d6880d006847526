// Ranks as messages name them.
#pragma once

#include <set>
#include <string>

#include "base/error.h"

namespace hctr {

/// "rank 1", or "ranks 0, 2".
inline std::string rank_list(const std::set<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += cat(text.empty() ? "" : ", ", rank);
  return cat(ranks.size() == 1 ? "rank " : "ranks ", text);
}

}  // namespace hctr
