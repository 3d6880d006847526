// Chunks parsed by several threads, as one stream in the order of the set.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "core/base/log.h"
#include "core/base/ordered_workers.h"
#include "formats/catalog/bad_records_file.h"
#include "formats/reader/chunk_source.h"
#include "formats/reader/negative_sampling.h"
#include "formats/reader/shuffled_slice.h"

namespace hctr {

/// A pool of objects that are used again, because their memory is warm. Outlives the objects it hands out.
template <class T>
class Recycler {
 public:
  /// An object, perhaps used before. It returns to the pool when the last pointer goes.
  std::shared_ptr<T> acquire() {
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

/// Rows that are parsed of a chunk of a shuffled set.
struct OwnRows {
  std::vector<RowSpan> spans;  ///< rows of the chunk
  int64_t pass_rows;           ///< the number of rows of a pass; `spans` follow from it
};

/// The rows of one chunk, for fill_batch(). Where ranks share the set, `samples` holds this rank's rows only.
struct ParsedChunk {
  std::shared_ptr<const SampleBlock> samples;
  int64_t rows = 0;                        ///< rows of all ranks
  int64_t first_row = 0;                   ///< the number of the first row, where ranks share the set
  ReaderPosition begin;                    ///< position of the first row; its `samples` is not set
  int64_t bad_records = 0;                 ///< records skipped since the very start, up to the end of the chunk
  std::vector<int64_t> rows_before_bad{};  ///< for each skipped record of the chunk: the rows before it
  std::optional<OwnRows> own{};            ///< the rows in `samples`, if ranks share a shuffled set; none: all
};

/// Reports bad records: warns of the first in each file, and fails when there are too many. Used by one thread at a
/// time.
struct BadRecordReport {
  std::string set;                             ///< its name, for messages
  std::optional<int64_t> most{};               ///< more bad records than these are an error; none: any number
  Log log = Log::silent();                     ///< receives the warnings
  std::set<size_t> files{};                    ///< the files that a warning named
  std::shared_ptr<BadRecordsFile> aside = {};  ///< the file to which bad records are written; null: none
};

/// A stream's rule that drops samples, and the widths of its blocks.
struct LeftOutNegatives {
  NegativeSampling rule;
  BatchShape shape;
};

class ParsedChunkStream {
 public:
  /// `slots`: of a row. `slice`: only these rows are parsed, counted from `from` on; the set must be able to select
  /// rows. None: all rows. `negatives`: rows that it leaves out are none of the stream; not together with a slice.
  /// `shuffled`: of passes of which it selects rows only these are parsed; not together with one of the others.
  ParsedChunkStream(SampleSet&, const PassOptions&, const ReaderPosition& from, int workers, int64_t slots,
                    Recycler<SampleBlock>&, BadRecordReport&, std::optional<RankSlice> slice = {},
                    std::optional<LeftOutNegatives> negatives = {}, std::optional<ShuffledSlice> shuffled = {});
  ~ParsedChunkStream() { close(); }

  /// Empty at the end of the set, or when closed. Errors: those of the format; Error(data) when there are too many bad
  /// records, or a whole pass has no others.
  std::optional<ParsedChunk> next();
  void close() {
    source_.close();
    workers_.close();
  }
  const std::optional<RankSlice>& slice() const { return slice_; }
  /// The error of a pass that has other rows than `expected`, from which its order followed.
  Error other_rows(int64_t expected) const;
  /// Rows that have been parsed so far.
  int64_t parsed_rows() const { return parsed_rows_; }

 private:
  struct Work {  // state of one thread
    Chunk chunk;
    std::vector<RowSpan> selected;  // if a slice is selected, shuffled or not: its rows of the chunk
    std::unique_ptr<Parser> parser;
    SampleBlock all;  // if negatives are sampled: every row of the chunk
    int64_t pass = 0, file = 0;
    // With a slice: the number of the chunk's first row, from the thread that has the chunk before; and of the next
    // chunk's, a promise that is dropped when this chunk cannot be read.
    std::future<int64_t> first_row;
    std::promise<int64_t> next_row;
  };
  struct Result {
    ParsedChunk chunk;
    BadRecords bad;
    size_t file;  // index in SampleSet::files()
  };
  bool cut(Work&);
  Result parse(Work&);
  bool selects(const Work& work) const { return slice_ || (shuffled_ && shuffled_->selects(work.pass)); }
  void select_rows(Work&, ParsedChunk&);
  void in_turn(Work&, ParsedChunk&, const std::function<void()>&);
  void count_bad_records(Result&);
  [[noreturn]] void fail_empty() const;

  SampleSet& set_;
  int64_t slots_;
  std::optional<RankSlice> slice_;
  std::optional<LeftOutNegatives> negatives_;
  std::optional<ShuffledSlice> shuffled_;  // used by one thread after another: when it has the number of its first row
  std::future<int64_t> next_row_;          // the number of the first row of the next chunk
  std::atomic<int64_t> parsed_rows_ = 0;
  Recycler<SampleBlock>& blocks_;
  BadRecordReport& bad_report_;
  int64_t bad_records_, pass_, pass_rows_, pass_bad_ = 0;  // pass_rows_, pass_bad_: of the pass so far
  ChunkSource source_;
  OrderedWorkers<Work, Result> workers_;  // last: its threads use the other members
};

}  // namespace hctr
