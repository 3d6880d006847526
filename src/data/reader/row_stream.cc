#include "data/reader/row_stream.h"

#include <algorithm>

#include "data/reader/shuffle.h"

namespace hctr {
namespace {

/// The next row of the set.
class Cursor {
 public:
  Cursor(BlockStream& blocks, const ReaderPosition& from) : blocks_(blocks), start_(from), skip_(from.rows) {}

  /// Makes sure that there is one; false at the end of the set.
  bool fill() {
    while (!block_.samples || row_ == block_.rows) {
      std::optional<Block> next = blocks_.next();
      if (!next) return false;
      block_ = std::move(*next);
      row_ = std::min(skip_, block_.rows);
      skip_ -= row_;
    }
    return true;
  }
  const std::shared_ptr<const SampleBlock>& block() const { return block_.samples; }
  int64_t pass() const { return block_.begin.pass; }
  int64_t left() const { return block_.rows - row_; }  // in the block
  int64_t bad_records() const { return block_.samples ? block_.bad_records : start_.bad_records; }
  /// The next `count` rows, which must be left; where rows are shared, what the block has of them.
  RowRange take(int64_t count) {
    const int64_t first = row_;
    row_ += count;
    const std::optional<Share>& share = blocks_.share();
    if (!share) return {block_.samples.get(), first, count};
    const int64_t before = share->below(block_.number), begin = share->below(block_.number + first),
                  end = share->below(block_.number + row_);
    return {block_.samples.get(), begin - before, end - begin};
  }
  ReaderPosition position() const {
    if (!block_.samples || skip_ > 0) return start_;
    ReaderPosition at = block_.begin;
    at.rows = row_;
    return at;
  }

 private:
  BlockStream& blocks_;
  ReaderPosition start_;
  Block block_;
  int64_t row_ = 0, skip_;  // skip: rows behind start_'s place that were delivered before
};

class InOrder : public RowStream {
 public:
  InOrder(BlockStream& blocks, const ReaderPosition& from) : cursor_(blocks, from) {}

  int64_t take(int64_t most, Rows& rows) override {
    int64_t taken = 0;
    while (taken < most && cursor_.fill()) {
      const int64_t count = std::min(cursor_.left(), most - taken);
      taken += count;
      if (const RowRange range = cursor_.take(count); range.count > 0) {
        rows.kept.push_back(cursor_.block());
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
  ReaderPosition begin;        // of its first row, as it stands in the set
  std::vector<RowRange> rows;  // each a single one
  std::vector<std::shared_ptr<const SampleBlock>> blocks;
  int64_t bad_records = 0;
  bool whole = false;  // no more rows will come
};

class Shuffled : public RowStream {
 public:
  Shuffled(BlockStream& blocks, const ReaderPosition& from, int64_t size, uint64_t seed)
      : cursor_(blocks, from), size_(size), key_(random_key(seed, stream_of("order of samples"))), start_(from) {}

  int64_t take(int64_t most, Rows& rows) override {
    int64_t taken = 0;
    if (now_) rows.kept.push_back(now_);
    while (taken < most) {
      if (!now_ || taken_ == size()) {
        if (!turn()) break;
        rows.kept.push_back(now_);
      }
      const int64_t count = std::min(size() - taken_, most - taken);
      const auto first = now_->rows.begin() + taken_;
      rows.ranges.insert(rows.ranges.end(), first, first + count);
      taken_ += count;
      taken += count;
      collect(count);
    }
    return taken;
  }

  ReaderPosition position() const override {
    if (!now_) return start_;
    ReaderPosition at = now_->begin;
    at.taken = taken_;
    return at;
  }
  int64_t bad_records() const override { return now_ ? now_->bad_records : start_.bad_records; }

 private:
  int64_t size() const { return static_cast<int64_t>(now_->rows.size()); }

  /// Goes on to the next window; false at the end of the set.
  bool turn() {
    collect(size_);
    if (!next_ || next_->rows.empty()) return false;
    taken_ = now_ ? 0 : std::min(start_.taken, static_cast<int64_t>(next_->rows.size()));
    now_ = std::move(next_);
    shuffle(now_->rows, random_key(key_, static_cast<uint64_t>(now_->begin.pass)),
            static_cast<uint64_t>(now_->begin.window));
    return true;
  }

  /// Adds up to `most` rows to the next window.
  void collect(int64_t most) {
    if (!next_) next_ = std::make_shared<Window>();
    Window& window = *next_;
    while (most > 0 && !window.whole) {
      const int64_t room = size_ - static_cast<int64_t>(window.rows.size());
      if (room == 0 || !cursor_.fill() || (!window.rows.empty() && cursor_.pass() != window.begin.pass)) {
        window.whole = true;
        return;
      }
      if (window.rows.empty()) {
        window.begin = cursor_.position();
        if (!now_)
          window.begin.window = start_.window;
        else if (now_->begin.pass == window.begin.pass)
          window.begin.window = now_->begin.window + 1;
      }
      const RowRange range = cursor_.take(std::min({cursor_.left(), most, room}));
      window.blocks.push_back(cursor_.block());
      window.bad_records = cursor_.bad_records();
      for (int64_t r = 0; r < range.count; ++r) window.rows.push_back({range.block, range.first + r, 1});
      most -= range.count;
    }
  }

  Cursor cursor_;
  int64_t size_;
  uint64_t key_;
  ReaderPosition start_;
  std::shared_ptr<Window> now_, next_;
  int64_t taken_ = 0;  // of now_
};

}  // namespace

void Rows::keep_slice(int64_t begin, int64_t end) {
  int64_t at = 0;
  size_t left = 0;
  for (const RowRange range : ranges) {
    const int64_t first = std::max(at, begin), last = std::min(at + range.count, end);
    if (first < last) ranges[left++] = {range.block, range.first + first - at, last - first};
    at += range.count;
  }
  ranges.resize(left);
}

std::unique_ptr<RowStream> in_order(BlockStream& blocks, const ReaderPosition& from) {
  return std::make_unique<InOrder>(blocks, from);
}

std::unique_ptr<RowStream> shuffled(BlockStream& blocks, const ReaderPosition& from, int64_t window, uint64_t seed) {
  return std::make_unique<Shuffled>(blocks, from, window, seed);
}

}  // namespace hctr
