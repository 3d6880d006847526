// Chunks parsed by several threads, as one stream of blocks in the order of the set.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/log.h"
#include "base/ordered_workers.h"
#include "data/reader/chunk_source.h"

namespace hctr {

/// Objects to be used again instead of being made anew: their memory is warm. Must outlive what it has given out.
template <class T>
class Recycler {
 public:
  std::shared_ptr<T> take() {
    return {get(), [this](T* used) {
              const std::lock_guard lock(mutex_);
              spare_.emplace_back(used);
            }};
  }

 private:
  T* get() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return new T;
    T* one = spare_.back().release();
    spare_.pop_back();
    return one;
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> spare_;
};

/// A parsed chunk.
struct Block {
  std::shared_ptr<const SampleBlock> samples;
  int64_t rows = 0;         ///< with those of other shares, which `samples` has not
  int64_t number = 0;       ///< of its first row, where rows are shared
  ReaderPosition begin;     ///< of its first row, but for `samples`
  int64_t bad_records = 0;  ///< left out since the very start, up to its end
};

/// What bad records of a set lead to. Used by one thread at a time.
struct BadRecordCare {
  std::string set;                ///< its name, for messages
  std::optional<int64_t> most{};  ///< more than these are an error; none: any number
  Log log = Log::silent();        ///< hears of the first in each file
  std::set<size_t> mentioned{};   ///< the files it has heard of
};

class BlockStream {
 public:
  /// `share`: only these rows are parsed, counted from where `from` stands; the set must allow it. Else all are.
  BlockStream(SampleSet&, const Passage&, const ReaderPosition& from, int workers, Recycler<SampleBlock>&,
              BadRecordCare&, std::optional<Share> share = {});

  /// Empty at the end of the set, or when closed. Errors: those of the format; Error(data) when there are too many bad
  /// records, or nothing else in a whole pass.
  std::optional<Block> next();
  void close() { workers_.close(); }
  const std::optional<Share>& share() const { return share_; }
  /// Rows that have been parsed so far.
  int64_t parsed_rows() const { return parsed_rows_; }

 private:
  struct Work {  // of one thread
    Chunk chunk;
    std::vector<RowSpan> selected;  // where rows are shared: those of this rank
    std::unique_ptr<Parser> parser;
    int64_t pass = 0, file = 0;
    std::future<int64_t>
        before;  // where rows are shared: the number of its first row, told by whoever has the chunk before
    std::promise<int64_t> behind;  // that of the next chunk's; dropped when this one cannot be read
  };
  struct Parsed {
    Block block;
    BadRecords bad;
    size_t file;  // in SampleSet::files()
  };
  bool cut(Work&);
  Parsed parse(Work&);
  void select_rows(Work&, Block&);
  void count(const Parsed&);
  [[noreturn]] void fail_empty() const;

  SampleSet& set_;
  std::optional<Share> share_;
  std::future<int64_t> number_;  // of the first row of the next chunk
  std::atomic<int64_t> parsed_rows_ = 0;
  Recycler<SampleBlock>& blocks_;
  BadRecordCare& care_;
  int64_t bad_records_, pass_, pass_rows_, pass_bad_ = 0;  // pass_rows_, pass_bad_: of the pass so far
  ChunkSource source_;
  OrderedWorkers<Work, Parsed> workers_;  // last: its threads use the rest
};

}  // namespace hctr
