#include "formats/reader/row_stream.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/reader/shuffle.h"

namespace hctr {
namespace {

/// Iterates over the rows of a ParsedChunkStream.
class Cursor {
 public:
  Cursor(ParsedChunkStream& chunks, const ReaderPosition& from) : chunks_(chunks), start_(from), skip_(from.rows) {}

  /// Reads the next chunk if the current one has no rows left. Returns false at the end of the set.
  bool fill() {
    while (!chunk_.samples || row_ == chunk_.rows) {
      std::optional<ParsedChunk> next = chunks_.next();
      if (!next) return false;
      behind_ += bad_left();
      chunk_ = std::move(*next);
      row_ = std::min(skip_, chunk_.rows);
      skip_ -= row_;
      next_bad_ = 0;
      span_ = 0;
      before_span_ = 0;
      while (bad_left() > 0 && chunk_.rows_before_bad[next_bad_] < row_) ++next_bad_;
    }
    return true;
  }
  /// For each bad record that precedes one of the next `count` rows, appends a number to `rows_before`: `taken` plus
  /// how many of these `count` rows precede the record. Call before next(count).
  void pass_on_bad(int64_t count, int64_t taken, std::vector<int64_t>& rows_before) {
    rows_before.insert(rows_before.end(), static_cast<size_t>(behind_), taken);
    behind_ = 0;
    for (; bad_left() > 0 && chunk_.rows_before_bad[next_bad_] < row_ + count; ++next_bad_)
      rows_before.push_back(taken + chunk_.rows_before_bad[next_bad_] - row_);
  }
  const std::shared_ptr<const SampleBlock>& samples() const { return chunk_.samples; }
  int64_t pass() const { return chunk_.begin.pass; }
  int64_t left() const { return chunk_.rows - row_; }  // rows left in the current chunk
  int64_t bad_records() const { return chunk_.samples ? chunk_.bad_records : start_.bad_records; }
  /// Returns the next `count` rows, at most left(). With a slice, returns only the rows in the slice.
  RowRange next(int64_t count) {
    const int64_t first = row_;
    row_ += count;
    const std::optional<RankSlice>& slice = chunks_.slice();
    if (!slice) return {chunk_.samples.get(), first, count};
    const int64_t before = slice->below(chunk_.first_row), begin = slice->below(chunk_.first_row + first),
                  end = slice->below(chunk_.first_row + row_);
    return {chunk_.samples.get(), begin - before, end - begin};
  }
  /// Appends the next `count` rows, at most left(), as single-row ranges. A row that was not parsed, because another
  /// rank owns it, has a null block.
  void next_single(int64_t count, std::vector<RowRange>& rows) {
    const SampleBlock* block = chunk_.samples.get();
    for (const int64_t end = row_ + count; row_ < end; ++row_) {
      if (!chunk_.own) {
        rows.push_back({block, row_, 1});
        continue;
      }
      const std::vector<RowSpan>& spans = chunk_.own->spans;
      for (; span_ < spans.size() && spans[span_].end <= row_; ++span_)
        before_span_ += spans[span_].end - spans[span_].begin;
      const bool own = span_ < spans.size() && spans[span_].begin <= row_;
      rows.push_back(own ? RowRange{block, before_span_ + row_ - spans[span_].begin, 1} : RowRange{nullptr, 0, 1});
    }
  }
  /// Number of rows per pass, if known: OwnRows::pass_rows of a shuffled set.
  std::optional<int64_t> pass_rows() const { return chunk_.own ? std::optional(chunk_.own->pass_rows) : std::nullopt; }
  ReaderPosition position() const {
    if (!chunk_.samples || skip_ > 0) return start_;
    ReaderPosition at = chunk_.begin;
    at.rows = row_;
    return at;
  }

 private:
  int64_t bad_left() const { return static_cast<int64_t>(chunk_.rows_before_bad.size() - next_bad_); }

  ParsedChunkStream& chunks_;
  ReaderPosition start_;
  ParsedChunk chunk_;
  int64_t row_ = 0, skip_;   // skip_: rows from start_'s chunk boundary to the first row to deliver
  size_t next_bad_ = 0;      // index in chunk_.rows_before_bad of the next bad record to report
  size_t span_ = 0;          // index in chunk_.own->spans of the first span that ends after row_
  int64_t before_span_ = 0;  // number of rows in the spans before span_
  int64_t behind_ = 0;       // number of unreported bad records at the end of earlier chunks
};

class InOrder : public RowStream {
 public:
  InOrder(ParsedChunkStream& chunks, const ReaderPosition& from) : cursor_(chunks, from) {}

  int64_t next(int64_t most, Rows& rows) override {
    int64_t taken = 0;
    while (taken < most && cursor_.fill()) {
      const int64_t count = std::min(cursor_.left(), most - taken);
      cursor_.pass_on_bad(count, taken, rows.rows_before_bad);
      taken += count;
      if (const RowRange range = cursor_.next(count); range.count > 0) {
        rows.owners.push_back(cursor_.samples());
        rows.ranges.push_back(range);
      }
    }
    return taken;
  }
  ReaderPosition position() const override { return cursor_.position(); }
  int64_t bad_records() const override { return cursor_.bad_records(); }

 private:
  Cursor cursor_;
};

struct Window {
  ReaderPosition begin;        // position of the window's first row in set order
  std::vector<RowRange> rows;  // single-row ranges
  std::vector<std::shared_ptr<const SampleBlock>> blocks;
  int64_t bad_records = 0;
  std::optional<int64_t> pass_rows;  // rows per pass, as assumed when the rows to parse were selected
  bool full = false;                 // no more rows will be added
};

class Shuffled : public RowStream {
 public:
  Shuffled(ParsedChunkStream& chunks, const ReaderPosition& from, int64_t size, uint64_t seed)
      : chunks_(chunks), cursor_(chunks, from), size_(size), seed_(seed), start_(from) {}

  int64_t next(int64_t most, Rows& rows) override {
    int64_t taken = 0;
    if (current_) rows.owners.push_back(current_);
    while (taken < most) {
      if (!current_ || delivered_ == size()) {
        if (!start_window()) break;
        rows.owners.push_back(current_);
      }
      const int64_t count = std::min(size() - delivered_, most - taken);
      const auto first = current_->rows.begin() + delivered_;
      rows.ranges.insert(rows.ranges.end(), first, first + count);
      delivered_ += count;
      taken += count;
      collect(count);
    }
    return taken;
  }

  ReaderPosition position() const override {
    if (!current_) return start_;
    ReaderPosition at = current_->begin;
    at.taken = delivered_;
    return at;
  }
  int64_t bad_records() const override { return current_ ? current_->bad_records : start_.bad_records; }
  std::optional<int64_t> pass_rows() const override {
    return current_ ? std::optional(current_->begin.window * size_ + size()) : std::nullopt;
  }

 private:
  int64_t size() const { return static_cast<int64_t>(current_->rows.size()); }

  /// Advances to the next window. Returns false at the end of the set.
  bool start_window() {
    collect(size_);
    if (!upcoming_ || upcoming_->rows.empty()) return false;
    delivered_ = current_ ? 0 : std::min(start_.taken, static_cast<int64_t>(upcoming_->rows.size()));
    current_ = std::move(upcoming_);
    const std::optional<int64_t>& pass_rows = current_->pass_rows;
    if (pass_rows && size() != std::min(size_, *pass_rows - current_->begin.window * size_))
      throw chunks_.other_rows(*pass_rows);
    shuffle_window(current_->rows, seed_, current_->begin.pass, current_->begin.window);
    return true;
  }

  /// Adds up to `most` rows to the next window.
  void collect(int64_t most) {
    if (!upcoming_) upcoming_ = std::make_shared<Window>();
    Window& window = *upcoming_;
    while (most > 0 && !window.full) {
      const int64_t left = size_ - static_cast<int64_t>(window.rows.size());
      if (left == 0 || !cursor_.fill() || (!window.rows.empty() && cursor_.pass() != window.begin.pass)) {
        window.full = true;
        return;
      }
      if (window.rows.empty()) {
        window.begin = cursor_.position();
        if (!current_)
          window.begin.window = start_.window;
        else if (current_->begin.pass == window.begin.pass)
          window.begin.window = current_->begin.window + 1;
      }
      const int64_t count = std::min({cursor_.left(), most, left});
      cursor_.next_single(count, window.rows);
      window.blocks.push_back(cursor_.samples());
      window.bad_records = cursor_.bad_records();
      window.pass_rows = cursor_.pass_rows();
      most -= count;
    }
  }

  const ParsedChunkStream& chunks_;
  Cursor cursor_;
  int64_t size_;
  uint64_t seed_;
  ReaderPosition start_;
  std::shared_ptr<Window> current_, upcoming_;
  int64_t delivered_ = 0;  // delivered rows of current_
};

}  // namespace

void Rows::keep_slice(int64_t begin, int64_t end) {
  int64_t at = 0;
  size_t left = 0;
  for (const RowRange range : ranges) {
    const int64_t first = std::max(at, begin), last = std::min(at + range.count, end);
    HCTR_EXPECT(range.block || first >= last, "row ", first, " of a batch belongs to this rank but was not parsed");
    if (first < last) ranges[left++] = {range.block, range.first + first - at, last - first};
    at += range.count;
  }
  ranges.resize(left);
}

std::unique_ptr<RowStream> in_order(ParsedChunkStream& chunks, const ReaderPosition& from) {
  return std::make_unique<InOrder>(chunks, from);
}

std::unique_ptr<RowStream> shuffled(ParsedChunkStream& chunks, const ReaderPosition& from, int64_t window,
                                    uint64_t seed) {
  return std::make_unique<Shuffled>(chunks, from, window, seed);
}

}  // namespace hctr
