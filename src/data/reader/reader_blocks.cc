#include <algorithm>
#include <thread>

#include "base/queue.h"
#include "base/thread_pool.h"
#include "data/reader/reader_run.h"
#include "data/reader/row_stream.h"
#include "data/reader/slot_ring.h"

namespace hctr {
namespace {

/// The rows of a batch, found but not laid out yet.
struct Gathered {
  Rows all;
  int64_t rows;  ///< of all ranks
  ReaderPosition behind;
  int64_t skipped;
};

/// What is parsed where not all is. When shuffling, rows of every rank are everywhere.
std::optional<Share> share_of(const ReaderSet& set) {
  if (set.options.ranks == 1 || set.options.shuffle > 0 || !set.samples->can_be_shared()) return {};
  return Share{.batch = set.options.batch, .begin = set.rank_begin, .end = set.rank_end};
}

class BlockRun : public ReaderRun {
 public:
  BlockRun(ReaderSet& of, const ReaderPosition& start)
      : set_(of),
        from_(start),
        blocks_(*of.samples, of.passage(), start, of.options.workers, of.blocks, of.care, share_of(of)),
        ready_(of.slots.size()),
        ring_(of.slots.size()),
        filling_(std::max(1, of.options.workers / 2)),
        collector_([this] { collect(); }),
        filler_([this] { fill_slots(); }) {}

  ~BlockRun() override {
    blocks_.close();
    gathered_.close();
    ready_.close();
    ring_.close();
    collector_.join();
    filler_.join();
  }

  std::optional<Ready> next() override { return ready_.pop(); }
  void release(int slot) override { ring_.release(static_cast<size_t>(slot)); }
  int64_t parsed_rows() const override { return blocks_.parsed_rows(); }

 private:
  /// The collector: takes rows in their order, and finds out which batch they belong to.
  void collect() try {
    const auto stream = set_.options.shuffle > 0 ? shuffled(blocks_, from_, set_.options.shuffle, set_.options.seed)
                                                 : in_order(blocks_, from_);
    int64_t samples = from_.samples;
    for (;;) {
      Gathered batch{};
      batch.rows = stream->take(set_.options.batch, batch.all);
      if (batch.rows == 0 || (batch.rows < set_.options.batch && !set_.options.keep_last_partial)) break;
      if (!blocks_.share()) batch.all.keep_slice(set_.rank_begin, set_.rank_end);
      samples += batch.rows;
      batch.behind = stream->position();
      batch.behind.samples = samples;
      batch.skipped = stream->bad_records();
      const bool last = batch.rows < set_.options.batch;
      if (!gathered_.push(std::move(batch))) return;
      if (last) break;
    }
    gathered_.close();
  } catch (...) {
    gathered_.fail(std::current_exception());
  }

  /// The filler: lays batch after batch out in slot after slot, while the next one is gathered.
  void fill_slots() try {
    for (size_t slot = 0;; slot = (slot + 1) % set_.slots.size()) {
      const std::optional<Gathered> batch = gathered_.pop();
      if (!batch) break;
      if (!ring_.take(slot)) return;
      fill_batch(set_.layout, set_.slots[slot], batch->all.ranges, filling_);
      set_.describe(*BatchView(set_.layout, set_.slots[slot]).state, batch->rows, batch->behind.samples - batch->rows);
      if (!ready_.push({static_cast<int>(slot), batch->behind, batch->skipped})) return;
    }
    ready_.close();
  } catch (...) {
    ready_.fail(std::current_exception());
  }

  ReaderSet& set_;
  ReaderPosition from_;
  BlockStream blocks_;
  BoundedQueue<Gathered> gathered_{1};
  BoundedQueue<Ready> ready_;
  SlotRing ring_;
  ThreadPool filling_;              // laying rows out takes about half of the time of parsing them
  std::thread collector_, filler_;  // last: start when all else is there
};

}  // namespace

std::unique_ptr<ReaderRun> run_of_blocks(ReaderSet& set, const ReaderPosition& from) {
  return std::make_unique<BlockRun>(set, from);
}

}  // namespace hctr
