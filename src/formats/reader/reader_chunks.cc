// Implementation of reading by chunks; see reader.h.
#include <algorithm>
#include <atomic>
#include <thread>

#include "core/base/queue.h"
#include "core/base/thread_pool.h"
#include "formats/reader/buffer_ring.h"
#include "formats/reader/reader_run.h"
#include "formats/reader/row_stream.h"

namespace hctr {
namespace {

/// The collected rows of a batch, not yet copied to a buffer.
struct BatchRows {
  Rows all;
  int64_t rows;  ///< number of rows over all ranks
  ReaderPosition after;
  int64_t skipped;
};

/// This rank's rows of each batch; empty if the rank parses all rows. Negative sampling requires all rows, because a
/// row's position in its batch depends on all earlier labels.
std::optional<RankSlice> slice_of(const ReaderSet& set) {
  if (set.options.ranks == 1 || set.negatives.samples() || !set.samples->can_select_rows()) return {};
  return RankSlice{.batch = set.options.batch, .begin = set.rank_begin, .end = set.rank_end};
}

std::optional<RankSlice> slice_in_order(const ReaderSet& set) {
  return set.options.shuffle > 0 ? std::nullopt : slice_of(set);
}

std::optional<ShuffledSlice> shuffled_slice(const ReaderSet& set, const ReaderPosition& from) {
  const std::optional<RankSlice> slice = slice_of(set);
  if (!slice || set.options.shuffle == 0 || !set.samples->can_select_single_rows()) return {};
  const std::optional<int64_t> exact = set.samples->exact_samples();
  return ShuffledSlice(*slice, set.options.shuffle, set.options.seed, from, exact ? exact : set.pass_rows);
}

ChunkParsing parsing_of(const ReaderSet& set, const ReaderPosition& from) {
  ChunkParsing parsing{.workers = set.options.workers,
                       .slots = set.layout.shape.slots(),
                       .slice = slice_in_order(set),
                       .negatives = {},
                       .shuffled = shuffled_slice(set, from)};
  if (set.negatives.samples()) parsing.negatives = {set.negatives, set.layout.shape};
  return parsing;
}

class ChunkRun : public ReaderRun {
 public:
  ChunkRun(ReaderSet& of, const ReaderPosition& start)
      : set_(of),
        from_(start),
        chunks_(*of.samples, of.pass_options(), start, parsing_of(of, start), of.blocks, of.bad_report),
        ready_(of.buffers.size()),
        ring_(of.buffers.size()),
        filling_(std::max(1, of.options.workers / 3)) {
    try {
      collector_ = std::thread([this] { collect(); });
      filler_ = std::thread([this] { fill_buffers(); });
    } catch (...) {  // a thread failed to start, so join the other thread before members are destroyed
      end();
      throw;
    }
  }

  ~ChunkRun() override { end(); }

  bool wait(std::chrono::milliseconds limit) override { return ready_.wait(limit); }
  std::optional<ReadyBatch> next() override { return ready_.pop(); }
  void release(int buffer) override { ring_.release(static_cast<size_t>(buffer)); }
  int64_t parsed_rows() const override { return chunks_.parsed_rows(); }

 private:
  void end() {
    ending_ = true;
    chunks_.close();
    batches_.close();
    ready_.close();
    ring_.close();
    if (collector_.joinable()) collector_.join();
    if (filler_.joinable()) filler_.join();
  }

  /// Collector thread: divides the stream of rows into batches.
  void collect() try {
    const auto stream = set_.options.shuffle > 0 ? shuffled(chunks_, from_, set_.options.shuffle, set_.options.seed)
                                                 : in_order(chunks_, from_);
    int64_t samples = from_.samples;
    for (;;) {
      BatchRows batch{};
      batch.rows = stream->next(set_.options.batch, batch.all);
      if (batch.rows < set_.options.batch && !ending_) set_.pass_rows = stream->pass_rows();
      if (batch.rows == 0 || (batch.rows < set_.options.batch && !set_.options.keep_last_partial)) {
        set_.rows_left_over = batch.rows;
        break;
      }
      if (!chunks_.slice()) batch.all.keep_slice(set_.rank_begin, set_.rank_end);
      samples += batch.rows;
      batch.after = stream->position();
      batch.after.samples = samples;
      batch.skipped = stream->bad_records();
      const bool last = batch.rows < set_.options.batch;
      if (!batches_.push(std::move(batch))) return;
      if (last) break;
    }
    batches_.close();
  } catch (...) {
    batches_.fail(std::current_exception());
  }

  /// Filler thread: copies batches into buffers while the collector collects the next batch.
  void fill_buffers() try {
    for (size_t buffer = 0;; buffer = (buffer + 1) % set_.buffers.size()) {
      const std::optional<BatchRows> batch = batches_.pop();
      if (!batch) break;
      if (!ring_.acquire(buffer)) return;
      fill_batch(set_.layout, set_.buffers[buffer], batch->all.ranges, filling_);
      set_.describe(*BatchView(set_.layout, set_.buffers[buffer]).state, batch->rows,
                    batch->after.samples - batch->rows);
      if (set_.options.on_filled) set_.options.on_filled(BatchView(set_.layout, set_.buffers[buffer]));
      ReadyBatch ready{static_cast<int>(buffer), batch->after, batch->skipped};
      ready.passed_on.rows_before_bad = batch->all.rows_before_bad;
      for (const RowRange& range : batch->all.ranges)
        ready.passed_on.kept.append(range.block->kept, static_cast<size_t>(range.first) * set_.kept_columns,
                                    static_cast<size_t>(range.count) * set_.kept_columns);
      if (!ready_.push(std::move(ready))) return;
    }
    ready_.close();
  } catch (...) {
    ready_.fail(std::current_exception());
  }

  ReaderSet& set_;
  ReaderPosition from_;
  std::atomic<bool> ending_ = false;  // the destructor sets it: a short batch then does not mean the end of the set
  ParsedChunkStream chunks_;
  BoundedQueue<BatchRows> batches_{1};
  BoundedQueue<ReadyBatch> ready_;
  BufferRing ring_;
  // has fewer threads than parsing, because filling takes a fifth of the time of parsing
  ThreadPool filling_;
  std::thread collector_, filler_;  // declared last, because the threads use the other members
};

}  // namespace

std::unique_ptr<ReaderRun> run_by_chunks(ReaderSet& set, const ReaderPosition& from) {
  return std::make_unique<ChunkRun>(set, from);
}

}  // namespace hctr
