// Which rows of a shuffled set belong to one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/data/rank_slice.h"
#include "formats/reader/reader_position.h"

namespace hctr {

/// Goes through the set chunk after chunk. A row's place in its window follows from the seed, the pass, the window's
/// number and the window's size, so it is known before the row is parsed wherever the rows of a pass are: the last
/// window of a pass is shorter. Memory holds a byte for each row of a window, and while these are found eight more.
///
/// Used by one thread at a time, but for selects().
class ShuffledSlice {
 public:
  /// `slice`: this rank's rows of each batch, counted from `from` on. `window`: its rows. `pass_rows`: those of a pass;
  /// none: found out in the first pass, of which all rows are parsed.
  ShuffledSlice(const RankSlice& slice, int64_t window, uint64_t seed, const ReaderPosition& from,
                std::optional<int64_t> pass_rows);

  /// Whether find() can select rows of this pass. Any thread may ask.
  bool selects(int64_t pass) const { return known_ || pass != from_.pass; }
  /// Finds which of the next chunk's `rows` rows belong to the rank; the spans count from the chunk's first. False when
  /// the pass has more rows than are known.
  bool find(int64_t pass, int64_t rows, std::vector<RowSpan>& spans);
  /// Goes past the next chunk, all of whose rows were parsed.
  void skip(int64_t pass, int64_t rows);
  /// The rows of a pass, where find() can select.
  int64_t pass_rows() const { return *pass_rows_; }

 private:
  void enter(int64_t pass);
  int64_t rows_of_window(int64_t window) const;
  int64_t delivered_before_pass() const;
  void find_own(int64_t window);

  const RankSlice slice_;
  const int64_t size_;
  const uint64_t seed_;
  const ReaderPosition from_;
  const bool known_;  // from the start
  std::optional<int64_t> pass_rows_;
  int64_t pass_, row_;         // position of the next row; row_ counts from the start of the pass
  int64_t begin_ = 0;          // after the first pass: rows delivered before the current pass
  int64_t window_ = -1;        // the one that own_ is of; -1: none
  std::vector<uint8_t> own_;   // [rows of the window] not 0 where the row is the rank's
  std::vector<RowSpan> took_;  // this rank's rows of the window in the order of delivery
};

}  // namespace hctr
