#include "formats/reader/shuffled_slice.h"

#include <algorithm>
#include <numeric>

#include "formats/reader/shuffle.h"

namespace hctr {

ShuffledSlice::ShuffledSlice(const RankSlice& slice, int64_t window, uint64_t seed, const ReaderPosition& from,
                             std::optional<int64_t> pass_rows)
    : slice_(slice),
      size_(window),
      seed_(seed),
      from_(from),
      known_(pass_rows.has_value()),
      pass_rows_(pass_rows),
      pass_(from.pass),
      row_(from.window * window - from.rows) {}

void ShuffledSlice::enter(int64_t pass) {
  if (pass == pass_) return;
  if (!pass_rows_) pass_rows_ = row_;
  begin_ = delivered_before_pass() + row_;
  pass_ = pass;
  row_ = 0;
  window_ = -1;
}

int64_t ShuffledSlice::rows_of_window(int64_t window) const { return std::min(size_, *pass_rows_ - window * size_); }

/// The number of rows delivered between the slice's start and the start of the current pass. Negative in the pass in
/// which the slice starts.
int64_t ShuffledSlice::delivered_before_pass() const {
  if (pass_ != from_.pass) return begin_;
  return -from_.window * size_ - std::min(from_.taken, rows_of_window(from_.window));
}

void ShuffledSlice::find_own(int64_t window) {
  std::vector<int64_t> order(static_cast<size_t>(rows_of_window(window)));
  std::iota(order.begin(), order.end(), int64_t{0});
  shuffle_window(order, seed_, pass_, window);
  own_.assign(order.size(), 0);
  slice_.find(delivered_before_pass() + window * size_, static_cast<int64_t>(order.size()), took_);
  for (const RowSpan& span : took_)
    for (int64_t i = span.begin; i < span.end; ++i) own_[static_cast<size_t>(order[static_cast<size_t>(i)])] = 1;
  window_ = window;
}

bool ShuffledSlice::find(int64_t pass, int64_t rows, std::vector<RowSpan>& spans) {
  enter(pass);
  spans.clear();
  if (row_ + rows > *pass_rows_) return false;
  // Skips rows of earlier windows, which were all delivered.
  int64_t row = pass_ == from_.pass ? std::clamp<int64_t>(from_.window * size_ - row_, 0, rows) : 0;
  while (row < rows) {
    const int64_t window = (row_ + row) / size_;
    if (window != window_) find_own(window);
    const int64_t begin = window * size_ - row_;  // first row of the window, relative to the chunk
    for (const int64_t end = std::min(rows, begin + static_cast<int64_t>(own_.size())); row < end; ++row) {
      if (own_[static_cast<size_t>(row - begin)] == 0) continue;
      if (!spans.empty() && spans.back().end == row)
        ++spans.back().end;
      else
        spans.push_back({row, row + 1});
    }
  }
  row_ += rows;
  return true;
}

void ShuffledSlice::skip(int64_t pass, int64_t rows) {
  enter(pass);
  row_ += rows;
}

}  // namespace hctr
