// The rows of a data set that belong to one rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hctr {

/// A range of consecutive rows, [begin, end).
struct RowSpan {
  int64_t begin, end;

  bool operator==(const RowSpan&) const = default;
};

/// Rows [begin, end) of each batch of `batch` rows. Row 0 is the first row of the first batch. Rows with a negative
/// index belong to no slice.
struct RankSlice {
  int64_t batch, begin, end;

  /// The number of rows of the slice whose index is below `row`.
  int64_t below(int64_t row) const {
    if (row <= 0) return 0;
    return row / batch * (end - begin) + std::clamp<int64_t>(row % batch - begin, 0, end - begin);
  }
  /// Finds the rows of the slice among the `count` rows from `first` on. The spans are relative to `first`.
  void find(int64_t first, int64_t count, std::vector<RowSpan>& spans) const {
    spans.clear();
    for (int64_t at = std::max<int64_t>(first, 0) / batch * batch; at < first + count; at += batch) {
      const RowSpan span{std::max(at + begin, first) - first, std::min(at + end, first + count) - first};
      if (span.begin < span.end) spans.push_back(span);
    }
  }
};

}  // namespace hctr
