// Parses chunks with several threads and returns them as one stream in set order.
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

/// A pool of reusable objects, whose memory is already allocated. Must outlive the objects that acquire() returns.
template <class T>
class Recycler {
 public:
  /// Returns a new or reused object. When its last pointer is destroyed, the object returns to the pool.
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

/// The parsed rows of a chunk, if ranks share a shuffled set.
struct OwnRows {
  std::vector<RowSpan> spans;  ///< parsed rows of the chunk
  int64_t pass_rows;           ///< number of rows per pass, from which `spans` was computed
};

/// The rows of one chunk. If ranks share the set, `samples` contains only this rank's rows.
struct ParsedChunk {
  std::shared_ptr<const SampleBlock> samples;
  int64_t rows = 0;                        ///< number of rows over all ranks
  int64_t first_row = 0;                   ///< index of the first row, if ranks share the set
  ReaderPosition begin;                    ///< position of the first row; its `samples` is not set
  int64_t bad_records = 0;                 ///< total skipped records up to the end of the chunk
  std::vector<int64_t> rows_before_bad{};  ///< [skipped records of the chunk] number of rows before each
  std::optional<OwnRows> own{};            ///< rows in `samples`, if ranks share a shuffled set; empty: all rows
};

/// Reports bad records: warns about the first in each file, and fails if there are too many. One thread at a time.
struct BadRecordReport {
  std::string set;                             ///< name of the set, for messages
  std::optional<int64_t> most{};               ///< maximum number of bad records; empty: unlimited
  Log log = Log::silent();                     ///< receives the warnings
  std::set<size_t> files{};                    ///< files of which a bad record was logged
  std::shared_ptr<BadRecordsFile> aside = {};  ///< file to which bad records are appended; null: none
};

/// The rule by which negatives are dropped from a stream, and the sizes of the stream's blocks.
struct LeftOutNegatives {
  NegativeSampling rule;
  BatchShape shape;
};

/// How a stream parses its chunks. At most one of the optional fields is set.
struct ChunkParsing {
  int workers;
  int64_t slots;                                ///< slots per row
  std::optional<RankSlice> slice{};             ///< if set, only these rows are parsed, counted from the stream's first
                                                ///< row; requires a set that can select rows
  std::optional<LeftOutNegatives> negatives{};  ///< if set, drops negatives from the stream
  std::optional<ShuffledSlice> shuffled{};      ///< selects the rows to parse in each pass of a shuffled set
};

class ParsedChunkStream {
 public:
  ParsedChunkStream(SampleSet&, const PassOptions&, const ReaderPosition& from, ChunkParsing, Recycler<SampleBlock>&,
                    BadRecordReport&);
  ~ParsedChunkStream() { close(); }

  /// The next chunk; empty at the end of the set, or if closed. Errors: those of the format; Error(data) if there are
  /// too many bad records, or a whole pass has no good records.
  std::optional<ParsedChunk> next();
  void close() {
    source_.close();
    workers_.close();
  }
  const std::optional<RankSlice>& slice() const { return slice_; }
  /// The error for a pass that has another number of rows than `expected`, which the shuffle order assumed.
  Error other_rows(int64_t expected) const;
  /// Number of rows parsed so far.
  int64_t parsed_rows() const { return parsed_rows_; }

 private:
  struct Work {  // state of one worker thread
    Chunk chunk;
    std::vector<RowSpan> selected;  // rows of the chunk to parse, if slice_ or shuffled_ selects rows
    std::unique_ptr<Parser> parser;
    SampleBlock all;  // with negative sampling: all rows of the chunk
    int64_t pass = 0, file = 0;
    // With a slice, first_row receives the index of the chunk's first row from the thread of the preceding chunk.
    // next_row passes the index on to the next chunk. If this chunk fails, next_row is destroyed without a value.
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
  std::optional<ShuffledSlice> shuffled_;  // used by one thread at a time: the thread whose first_row is known
  std::future<int64_t> next_row_;          // index of the next chunk's first row
  std::atomic<int64_t> parsed_rows_ = 0;
  Recycler<SampleBlock>& blocks_;
  BadRecordReport& bad_report_;
  int64_t bad_records_, pass_, pass_rows_, pass_bad_ = 0;  // pass_rows_, pass_bad_: counts of the current pass
  ChunkSource source_;
  OrderedWorkers<Work, Result> workers_;  // declared last, because its threads use the other members
};

}  // namespace hctr
