// The rows of a shuffled set that belong to one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/data/rank_slice.h"
#include "formats/reader/reader_position.h"

namespace hctr {

/// Selects a rank's rows chunk by chunk, before they are parsed. A row's shuffled position follows from the seed, the
/// pass, the window's index and the window's size. The last window of a pass is shorter, so the number of rows per pass
/// must be known. Memory: one byte per row of a window; nine bytes per row during the selection.
///
/// Not thread-safe, except selects().
class ShuffledSlice {
 public:
  /// `slice`: this rank's rows of each batch, counted from `from` on. `window`: rows per window. `pass_rows`: rows per
  /// pass; empty: counted in the first pass, in which all rows are parsed.
  ShuffledSlice(const RankSlice& slice, int64_t window, uint64_t seed, const ReaderPosition& from,
                std::optional<int64_t> pass_rows);

  /// Whether find() can select rows of this pass. Thread-safe.
  bool selects(int64_t pass) const { return known_ || pass != from_.pass; }
  /// Finds this rank's rows in the next chunk, which has `rows` rows. Spans are relative to the chunk. Returns false if
  /// the pass has more than pass_rows() rows.
  bool find(int64_t pass, int64_t rows, std::vector<RowSpan>& spans);
  /// Skips the next chunk, whose rows were all parsed.
  void skip(int64_t pass, int64_t rows);
  /// Number of rows per pass. Requires selects().
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
  const bool known_;  // pass_rows_ was given to the constructor
  std::optional<int64_t> pass_rows_;
  int64_t pass_, row_;         // position of the next row; row_ is relative to the pass
  int64_t begin_ = 0;          // after the first pass: rows delivered before the current pass
  int64_t window_ = -1;        // window index of own_; -1: none
  std::vector<uint8_t> own_;   // [rows of the window] nonzero if the row belongs to this rank
  std::vector<RowSpan> took_;  // this rank's rows of the window, in delivery order
};

}  // namespace hctr
